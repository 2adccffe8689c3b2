"""What all sources share: their base class, processes beside the script, and the files that hooks write."""

import asyncio
import os
import signal
import stat
import subprocess
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import IO, Any, BinaryIO

from tfmemtop.engine.stream.stream import Stream
from tfmemtop.events import Damage, Event
from tfmemtop.events.damage import Damaged

Send = Callable[[int, dict[str, Any]], object]
"""A function that sends a command to the hooks of a process."""


class Source:
    """A part of a watch, which publishes events on *stream*. It overrides what it needs. Create it in the running loop.

    A watch begins its parts in one order, drains them in the same order, and closes them in the opposite order.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._tasks: list[asyncio.Task[None]] = []

    def begin(self) -> None:
        """Start, and follow the stream."""
        self._stream.listen(self.on_event)

    def on_event(self, event: Event) -> None:
        """Handle an event of the stream."""

    def drain(self) -> None:
        """Publish what has arrived until now, so that the end of a run is published after it."""

    def close(self) -> None:
        """Stop, and publish nothing more."""
        self._stream.forget(self.on_event)
        for task in self._tasks:
            task.cancel()

    def _keep_doing(self, work: Coroutine[None, None, None]) -> None:
        """Do *work* beside all else, until this source is closed."""
        self._tasks.append(asyncio.get_running_loop().create_task(work))


_LARGEST = 1 << 24  # bytes of output after which no more is read


class HelperProcess:
    """A process that runs *command*, with *stdin* as its input. Its exit status is collected with the script's.

    *done* is called when the process closes its output, with all that it wrote to stdout and stderr. It is called with
    ``None`` if the process was killed because it took longer than *limit_s* seconds. The process has a process session
    (``setsid``) of its own, which is added to *sessions*: it descends from this one, but does not belong to the script.

    Raises:
        OSError: the process cannot be started.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        command: list[str],
        limit_s: float,
        done: Callable[[bytes | None], None],
        sessions: set[int],
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
        sessions.add(self.pid)
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


def read_beginning(folder: Path, name: str, size: int) -> bytes:
    """Return the first *size* bytes of the file *name* in *folder*.

    Raises:
        OSError: the file is not there, or cannot be read.
        Damaged: *name* is not a regular file of this folder, or the file is shorter than *size*.
    """
    data = read_from(folder, name, 0, size)
    if len(data) < size:
        raise Damaged(Damage.CUT_SHORT)
    return data


def read_from(folder: Path, name: str, at: int, most: int) -> bytes:
    """Return what the file *name* in *folder* has from byte *at* on, at *most* so many bytes.

    Raises:
        OSError: the file is not there, or cannot be read.
        Damaged: *name* is not a regular file of this folder.
    """
    if "/" in name:
        raise Damaged(Damage.NOT_A_FILE)
    with open_carefully(folder / name) as file:
        file.seek(at)
        return file.read(most)


def open_carefully(path: Path) -> BinaryIO:
    """Open the file *path*, which a script may have made, for reading.

    Only a regular file is opened: a pipe could make the engine wait for a writer.

    Raises:
        OSError: the file is not there, or cannot be read.
        Damaged: *path* is not a regular file.
    """
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise Damaged(Damage.NOT_A_FILE)
    return file
