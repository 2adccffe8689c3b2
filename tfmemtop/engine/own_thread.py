"""A thread for calls that may never return, such as those to a driver or a file system.

The keeper uses this too, so it imports little.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar

WAIT_S = 5.0
"""How long a file system may take to answer. The end of a session waits at most that long."""

T = TypeVar("T")
P = ParamSpec("P")

_Job = tuple["Future[Any]", Callable[[], Any]]


class OwnThread(Executor):
    """An executor with one thread, which starts with the first call.

    Neither the exit of Python nor :meth:`shutdown` waits for the thread. Python's own executors are not used because
    with them, a call that hangs keeps the process from exiting.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._closed = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        """Have *fn* called in the thread, after all calls that were submitted before.

        Raises:
            RuntimeError: the executor has been shut down, or no more threads are allowed.
        """
        if self._closed:
            raise RuntimeError("after shutdown")
        if self._thread is None:
            thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            thread.start()
            self._thread = thread
        future: Future[T] = Future()
        self._jobs.put((future, lambda: fn(*args, **kwargs)))
        return future

    def shutdown(self, wait: bool = False, *, cancel_futures: bool = False) -> None:
        """Refuse further calls. A call that is running goes on to its end.

        With *cancel_futures*, those still waiting are dropped.
        """
        self._closed = True
        if cancel_futures:
            while not self._jobs.empty():
                job = self._jobs.get()
                if job is not None:
                    job[0].cancel()
        self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            future, call = job
            if not future.set_running_or_notify_cancel():
                continue
            try:
                result = call()
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)
            del job, future, call
