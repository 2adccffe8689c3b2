"""A program on a pty of its own, whose drawing is read as fast as a terminal would read it; folders of its own."""

import fcntl
import os
import re
import select
import signal
import struct
import tempfile
import termios
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import NoReturn
from unittest import mock

from tests.own_sessions import own_sessions

SIZE = (100, 30)
"""Columns and rows."""

_KEPT = 1 << 20
_LOOK_S = 0.1


@contextmanager
def private_sessions() -> Iterator[Path]:
    """Make a new folder, in which tfmemtop also keeps its sessions and outputs until the block ends."""
    # Always under /tmp, even if TMPDIR is set: a socket's path has to be short.
    with (
        tempfile.TemporaryDirectory(prefix="tfm", dir="/tmp") as folder,
        mock.patch.dict(os.environ, XDG_RUNTIME_DIR=folder, XDG_STATE_HOME=folder),
    ):
        try:
            yield Path(folder)
        finally:
            for session in own_sessions():
                os.kill(session.pid, signal.SIGTERM)
            while own_sessions():  # an engine ends its script before itself
                time.sleep(0.05)


class Terminal:
    """Runs *command* on a pty. Its newest drawing is stored in ``drawn``.

    ``began`` is the moment before it was started, on ``time.perf_counter``. If it has not ended, it is killed when the
    block ends.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str] = os.environ,
        cwd: Path = Path(),
        size: tuple[int, int] = SIZE,
    ) -> None:
        self.drawn = bytearray()
        self._news = threading.Condition()
        self._closed = False
        self._code: int | None = None
        self.began = time.perf_counter()
        self.pid, self._master = os.forkpty()
        if self.pid == 0:
            _become(command, {**environment, "TERM": "xterm-256color"}, cwd, size)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while not self._closed:
            if not select.select([self._master], [], [], _LOOK_S)[0]:
                continue
            try:
                data = os.read(self._master, 1 << 16)
            except OSError:
                data = b""
            with self._news:
                self._closed |= not data
                self.drawn += data
                del self.drawn[:-_KEPT]
                self._news.notify_all()

    @property
    def code(self) -> int | None:
        """The exit code, as of a shell; None while the program runs."""
        if self._code is None:
            with suppress(ChildProcessError):
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                if pid:
                    code = os.waitstatus_to_exitcode(status)
                    self._code = code if code >= 0 else 128 - code
        return self._code

    def wait_for(self, text: str | re.Pattern[bytes], timeout_s: float = 30.0) -> float:
        """Return the seconds since ``began`` after which *text* is drawn, or something that matches the pattern.

        Raises:
            RuntimeError: it was not drawn in *timeout_s* seconds. The message ends with what was drawn.
        """
        wanted = re.compile(re.escape(text.encode())) if isinstance(text, str) else text
        with self._news:
            self._news.wait_for(lambda: wanted.search(self.drawn) or self._closed, timeout_s)
            if not wanted.search(self.drawn):
                raise RuntimeError(f"{text!r} was not drawn: …{self.drawn[-2000:].decode(errors='replace')}")
        return time.perf_counter() - self.began

    def press(self, keys: bytes) -> None:
        """Write *keys* as if they were typed at a keyboard."""
        with suppress(OSError):
            os.write(self._master, keys)

    def close(self) -> None:
        """Kill the program if it has not ended, and close the terminal."""
        if self.code is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(self.pid, 0)
        self._closed = True
        self._reader.join()
        os.close(self._master)

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def _become(command: Sequence[str], environment: Mapping[str, str], cwd: Path, size: tuple[int, int]) -> NoReturn:
    try:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        os.chdir(cwd)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # this Python ignores them, a shell does not
            signal.signal(number, signal.SIG_DFL)
        os.execvpe(command[0], list(command), dict(environment))
    finally:
        os._exit(127)
