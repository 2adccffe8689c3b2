"""A program on a pty of a given size. Its drawing is read as fast as a terminal would read it."""

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
    """Make a new folder, in which tfmemtop also keeps its sessions and outputs until the block ends."""
    names = ("XDG_RUNTIME_DIR", "XDG_STATE_HOME")
    before = {name: os.environ.get(name) for name in names}
    # Always under /tmp, even if TMPDIR is set: a socket's path has to be short.
    with tempfile.TemporaryDirectory(prefix="tfm", dir="/tmp") as folder:
        os.environ.update(dict.fromkeys(names, folder))
        try:
            yield Path(folder)
        finally:
            for session in own_sessions():
                os.kill(session.pid, signal.SIGTERM)
            while own_sessions():  # an engine ends its script before itself
                time.sleep(0.05)
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


class Terminal:
    """Runs *command* on a pty of *columns* by *rows*, with our environment and *environment*.

    When the block ends, the program is ended. ``began`` is the moment before it was started, on ``time.perf_counter``.
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
        """Return the seconds since ``began`` after which *text* is drawn, or something that matches the pattern.

        Raises:
            RuntimeError: it was not drawn in *timeout_s* seconds. The message ends with what was drawn.
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
        """Return the seconds from pressing *keys* until *text* is drawn. A text drawn before that does not count.

        Raises:
            RuntimeError: *text* was not drawn in *timeout_s* seconds.
        """
        with self._news:
            self._drawn.clear()
        begun = time.perf_counter()
        self.press(keys)
        self.wait_for(text, timeout_s)
        return time.perf_counter() - begun

    def wait_closed(self, timeout_s: float) -> float:
        """Return the seconds since ``began`` after which the program closed the terminal.

        Raises:
            RuntimeError: the program did not close it in *timeout_s* seconds.
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
