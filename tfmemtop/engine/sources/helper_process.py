"""A process that the engine starts beside the script, and whose output is its answer."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable
from typing import IO

_LARGEST = 1 << 24  # bytes of output after which no more is read


class HelperProcess:
    """A process that runs *command*, with *stdin* as its input. Its exit status is collected with the script's.

    *done* is called when the process closes its output, with all that it wrote to stdout and stderr. It is called with
    ``None`` if the process was killed because it took longer than *limit_s* seconds.

    Raises:
        OSError: the process cannot be started.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        command: list[str],
        limit_s: float,
        done: Callable[[bytes | None], None],
        stdin: int | IO[bytes] = subprocess.DEVNULL,
    ) -> None:
        self._loop = loop
        self._done = done
        self._output = b""
        process = subprocess.Popen(
            command,
            cwd="/",
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # so nothing that ends the script or leaves a terminal ends this process
        )
        process.returncode = 0
        assert process.stdout is not None
        self.pid = process.pid
        self._pipe = process.stdout
        os.set_blocking(self._pipe.fileno(), False)
        loop.add_reader(self._pipe.fileno(), self._readable)
        self._limit = loop.call_later(limit_s, self._give_up)

    def let_go(self) -> None:
        """Stop waiting for the process. It goes on by itself, and *done* is not called."""
        self._limit.cancel()
        if not self._pipe.closed:
            self._loop.remove_reader(self._pipe.fileno())
            self._pipe.close()

    def end(self) -> None:
        """Kill the process and its process group. *done* is not called."""
        self.let_go()
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # the process has ended by itself

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
