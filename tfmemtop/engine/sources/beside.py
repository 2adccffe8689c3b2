"""A process of ours that works beside the script and answers on its stdout."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable
from typing import IO

_LARGEST = 1 << 24  # bytes of an answer


class Beside:
    """A process of *command*, with *stdin* as its input. Its exit status is collected with the script's.

    Its *environment* is this process's, and its *program* the first of the *command*, where they are not given.
    *done* gets all that it has said once it ends, or ``None`` if it was ended because it took longer than *limit_s*.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        command: list[str],
        limit_s: float,
        done: Callable[[bytes | None], None],
        stdin: int | IO[bytes] = subprocess.DEVNULL,
        environment: dict[str, str] | None = None,
        program: str | None = None,
    ) -> None:
        self._loop = loop
        self._done = done
        self._output = b""
        process = subprocess.Popen(
            command,
            executable=program,
            env=environment,
            cwd="/",
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # nothing that ends the script or leaves a terminal ends it
        )
        process.returncode = 0
        assert process.stdout is not None
        self.pid = process.pid
        self._pipe = process.stdout
        os.set_blocking(self._pipe.fileno(), False)
        loop.add_reader(self._pipe.fileno(), self._readable)
        self._limit = loop.call_later(limit_s, self._give_up)

    def let_go(self) -> None:
        """Stop waiting for it; it goes on by itself."""
        self._limit.cancel()
        if not self._pipe.closed:
            self._loop.remove_reader(self._pipe.fileno())
            self._pipe.close()

    def end(self) -> None:
        """End it; nothing more comes of it."""
        self.let_go()
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # it has ended by itself

    def _readable(self) -> None:
        data = self._pipe.read()
        if data and len(self._output) < _LARGEST:
            self._output += data
        elif data is not None:
            self.let_go()
            self._done(self._output)

    def _give_up(self) -> None:
        self.end()
        self._done(None)
