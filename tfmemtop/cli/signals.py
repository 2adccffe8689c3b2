"""Signals that come to this command, and are passed on to the script, unless it has received them too.

As the task of a Slurm step or in a container, the screen ends with this command, and the script with both. So when the
user leaves the screen, this command waits for the script and returns its exit code. Signals that Slurm sends to the
task, or Kubernetes to the container, are passed on.

A process that catches a signal cannot find out whether it came to the whole process group, or Slurm step. So there is a
second process, in the same process group, or in the same step but in a process session of its own. It blocks the
signals, and is asked whether one is pending. The kernel makes a signal to the group pending in all its processes at
once. So the answer is right however late either of the two runs.
"""

import asyncio
import os
import queue
import signal
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from tfmemtop.engine.stream.server import Client, connect
from tfmemtop.events import CaughtUp, Run, RunEnd, Stop

_PassOn = Callable[[int], object]
_WAIT_S = 0.1
"""Seconds after a signal until the others have received it too.

Slurm sends a signal to one process after another. ``timeout`` sends it to this process, and then to the group.
"""


class GroupListener:
    """Finds the signals that were sent to this process alone.

    Create it before there are other threads. Like the script, the second process, with process number ``pid``, is a
    child of this process: Slurm may send a signal to all descendants of the process that it started, and an orphan
    would not receive it. It ends with :meth:`close`, or with this process.

    Raises:
        OSError: the second process cannot be started.
    """

    def __init__(self, numbers: Collection[int], *, apart: bool = False) -> None:
        """*numbers* are the signals. *apart*: the second process is in a process session of its own."""
        self._line, line = socket.socketpair()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                if apart:
                    os.setsid()
                _answer(line)
            finally:
                os._exit(0)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        line.close()
        self._received: queue.SimpleQueue[tuple[int, float, _PassOn]] = queue.SimpleQueue()
        threading.Thread(target=self._decide, daemon=True, name="group signals").start()

    def received(self, number: int, pass_on: _PassOn) -> None:
        """Have a thread call *pass_on* with the signal *number*, which has just arrived, if it came to us alone."""
        self._received.put((number, time.monotonic(), pass_on))

    def close(self) -> None:
        """End the second process."""
        with suppress(ChildProcessError):  # it has ended, and its status was collected with the script's
            if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:  # it still has the number
                os.kill(self.pid, signal.SIGKILL)  # a stopped process would not end by itself
            os.waitpid(self.pid, 0)

    def _decide(self) -> None:
        others_have: dict[int, float] = {}  # what arrived before that time, the others have received
        while True:
            number, arrived, pass_on = self._received.get()
            time.sleep(max(0, arrived + _WAIT_S - time.monotonic()))
            if self._is_pending(number):
                others_have[number] = time.monotonic()
            elif arrived > others_have.get(number, 0):  # two signals may be pending as one
                pass_on(number)

    def _is_pending(self, number: int) -> bool:
        try:
            self._line.send(bytes([number]))
            return self._line.recv(1) == b"\1"
        except OSError:
            return False  # the second process was killed


def _answer(line: socket.socket) -> None:
    """Answer for each number from *line* whether that signal is pending, and discard it, until *line* is closed."""
    # Other processes may wait until our stdout, or another descriptor of ours, is closed everywhere. They must not wait
    # for this process.
    for descriptor in map(int, os.listdir("/proc/self/fd")):  # noqa: PTH208
        if descriptor != line.fileno():
            with suppress(OSError):  # the descriptor of the listing itself
                os.close(descriptor)
    while number := line.recv(1):
        pending = 0
        while signal.sigtimedwait(number, 0):
            pending = 1
        line.send(bytes([pending]))


_MEANT = (signal.SIGUSR1, signal.SIGUSR2)
"""Signals that the screen itself does not use."""
_ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)


def listen_to_step() -> GroupListener:
    """Start the listener that notices whether Slurm sent a signal to the whole step. Then the script has it already.

    Raises:
        OSError: the listener cannot be started.
    """
    return GroupListener((*_MEANT, *_ENDING), apart=True)


@contextmanager
def signals_passed_on(socket: str, step: GroupListener) -> Iterator[None]:
    """In this context, pass the signals :data:`_MEANT` on to the script of the engine that listens at *socket*.

    A signal that the whole *step* has received is not passed on.
    """

    def received(number: int, _: FrameType | None) -> None:
        step.received(number, lambda number: asyncio.run(_tell(socket, number)))

    before = {number: signal.signal(number, received) for number in _MEANT}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def wait_for_script(socket: str, first: int | None, step: GroupListener) -> int:
    """Wait until the script has ended; return its exit code, or 128 plus the number of the signal that ended it.

    *first* is a signal that has already arrived. Each signal is passed on, unless the whole *step* has received it.

    Raises:
        OSError: the engine cannot be reached.
    """
    return asyncio.run(_wait(socket, first, step))


async def _wait(socket: str, first: int | None, step: GroupListener) -> int:
    client, loop = await connect(socket), asyncio.get_running_loop()
    pid, code, caught_up = 0, 1, False

    def pass_on(number: int) -> None:
        if pid:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    async for batch in client.events():
        for event in batch:
            if isinstance(event, Run):
                pid = event.pid
            elif isinstance(event, RunEnd):
                pid, code = 0, event.shell_code
            caught_up |= isinstance(event, CaughtUp)
        if caught_up and not pid:
            break
        if caught_up and first is not None:
            step.received(first, pass_on)
            first = None
        if pid:
            for number in (*_MEANT, *_ENDING):
                loop.add_signal_handler(number, step.received, number, pass_on)
    if not pid:
        await _end_engine(client)
    return code


async def _end_engine(client: Client) -> None:
    """Let the engine end now, and wait until it has: it must not run longer than the step."""
    with suppress(ConnectionError):
        await client.send(Stop(quit=True))
    async for _ in client.events():
        pass


async def _tell(socket: str, number: int) -> None:
    with suppress(OSError):  # the engine has ended, and the script with it
        client = await connect(socket)
        pid = await _script(client)
        if pid:
            os.kill(pid, number)
        await client.close()


async def _script(client: Client) -> int:
    pid = 0
    async for batch in client.events():
        for event in batch:
            pid = event.pid if isinstance(event, Run) else 0 if isinstance(event, RunEnd) else pid
            if isinstance(event, CaughtUp):
                return pid
    return 0
