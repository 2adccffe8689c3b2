"""A program on a pty of a given size, whose drawing is read as fast as a terminal would read it."""

import os
import re
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

import pexpect

from tests.own_sessions import own_sessions

TFMEMTOP = (sys.executable, "-m", "tfmemtop")

_KEPT = 1 << 20


@contextmanager
def private_sessions() -> Iterator[Path]:
    """A new folder, which is also where tfmemtop keeps its sessions and outputs until the block ends."""
    names = ("XDG_RUNTIME_DIR", "XDG_STATE_HOME")
    before = {name: os.environ.get(name) for name in names}
    # Under /tmp whatever TMPDIR says: a socket's path has to be short.
    with tempfile.TemporaryDirectory(prefix="tfm", dir="/tmp") as folder:
        os.environ.update(dict.fromkeys(names, folder))
        try:
            yield Path(folder)
        finally:
            for session in own_sessions():
                os.kill(session.pid, signal.SIGTERM)
            while own_sessions():  # an engine ends its script first
                time.sleep(0.05)
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


class Terminal:
    """Runs *command* on a pty of *columns* by *rows*, *environment* over ours; at the block's end hangs up.

    ``began`` is the moment before it was started, on ``time.perf_counter``.
    """

    def __init__(
        self, command: Sequence[str], columns: int, rows: int, environment: Mapping[str, str] | None = None
    ) -> None:
        environment = {**os.environ, **(environment or {}), "TERM": "xterm-256color"}
        self._drawn = bytearray()
        self._news = threading.Condition()
        self._closed = False
        self.received = 0
        self.began = time.perf_counter()
        self._child = pexpect.spawn(command[0], list(command[1:]), dimensions=(rows, columns), env=environment)
        self._child.delaybeforesend = None
        assert self._child.pid is not None
        self.pid = self._child.pid
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._child.child_fd, 1 << 16)
            except OSError:
                data = b""
            with self._news:
                self._closed = not data
                self.received += len(data)
                self._drawn += data
                del self._drawn[:-_KEPT]
                self._news.notify_all()
            if not data:
                return

    def wait_for(self, text: str | re.Pattern[bytes], timeout_s: float = 30.0) -> float:
        """The seconds since ``began`` after which *text* was drawn, or what a pattern describes.

        Raises:
            RuntimeError: it was not; the message ends with what was.
        """
        wanted = re.compile(re.escape(text.encode())) if isinstance(text, str) else text
        with self._news:
            self._news.wait_for(lambda: wanted.search(self._drawn) or self._closed, timeout_s)
            if not wanted.search(self._drawn):
                raise RuntimeError(f"{text!r} was not drawn: …{bytes(self._drawn[-2000:]).decode(errors='replace')}")
        return time.perf_counter() - self.began

    def press(self, keys: str) -> None:
        self._child.send(keys)

    def answer(self, keys: str, text: str, timeout_s: float = 30.0) -> float:
        """The seconds from pressing *keys* until *text* is drawn, again if it has been before.

        Raises:
            RuntimeError: it was not drawn.
        """
        with self._news:
            self._drawn.clear()
        begun = time.perf_counter()
        self.press(keys)
        self.wait_for(text, timeout_s)
        return time.perf_counter() - begun

    def wait_closed(self, timeout_s: float) -> float:
        """The seconds since ``began`` after which the program let go of the terminal.

        Raises:
            RuntimeError: it did not.
        """
        with self._news:
            if not self._news.wait_for(lambda: self._closed, timeout_s):
                raise RuntimeError(f"still running: …{bytes(self._drawn[-2000:]).decode(errors='replace')}")
        return time.perf_counter() - self.began

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._child.isalive():
            self._child.terminate(force=True)
        self._reader.join(5)
        self._child.close(force=True)
