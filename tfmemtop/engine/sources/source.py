"""What all sources share: their base class, processes beside the script, and the files that hooks write."""

import asyncio
import os
import signal
import stat
import subprocess
from collections.abc import Callable, Coroutine
from contextlib import closing, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO

from tfmemtop.engine.sources.processes import session_of
from tfmemtop.engine.stream import Stream
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
        self._closed = False

    def begin(self) -> None:
        """Start, and follow the stream."""
        self._stream.listen(self.on_event)

    def on_event(self, event: Event) -> None:
        """Handle an event of the stream."""

    def drain(self) -> None:
        """Publish what has arrived until now, so that the end of a run is published after it."""

    def close(self) -> None:
        """Stop, and publish nothing more."""
        self._closed = True  # a task in wait_for, before Python 3.12, can miss that it is cancelled
        self._stream.forget(self.on_event)
        for task in self._tasks:
            task.cancel()

    def _keep_doing(self, work: Coroutine[None, None, None]) -> None:
        """Do *work* beside all else, until this source is closed."""
        task = asyncio.get_running_loop().create_task(work)
        task.add_done_callback(_log_failure)
        self._tasks.append(task)


def _log_failure(task: "asyncio.Task[None]") -> None:
    """Write a task's error to the engine's log at once: asyncio itself does so when the task is forgotten."""
    if not task.cancelled() and (error := task.exception()):
        task.get_loop().call_exception_handler({"message": "a source has failed", "exception": error, "task": task})


_LARGEST = 1 << 24  # bytes of output after which no more is read


async def helper_output(
    command: list[str],
    limit_s: float,
    sessions: set[int],
    stdin: int | IO[bytes] = subprocess.DEVNULL,
    *,
    outlives: bool = False,
) -> bytes | None:
    """Run *command* beside the script until it closes its output, and return all that it wrote to stdout and stderr.

    ``None`` if it was killed because it took longer than *limit_s* seconds. It is killed too if this task is cancelled,
    unless it *outlives* that. The process has a process session (``setsid``) of its own, which is added to *sessions*:
    it descends from this process, but does not belong to the script. Those that have ended are taken out. Its exit
    status is collected with the script's.

    Raises:
        OSError: the process cannot be started.
    """
    # Not asyncio's own subprocess: it would wait for the exit status, which is collected with the script's.
    process = subprocess.Popen(  # noqa: ASYNC220
        command,
        cwd="/",
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # so nothing that ends the script or leaves a terminal ends this process
    )
    process.returncode = 0
    sessions.intersection_update(leader for leader in list(sessions) if session_of(leader) is not None)
    sessions.add(process.pid)
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    try:
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, process.stdout)
        with closing(transport):
            return await asyncio.wait_for(reader.readexactly(_LARGEST), limit_s)
    except asyncio.IncompleteReadError as ended:
        return ended.partial
    except (asyncio.TimeoutError, asyncio.CancelledError) as error:
        late = isinstance(error, asyncio.TimeoutError)
        if late or not outlives:
            with suppress(ProcessLookupError):  # it has ended by itself
                os.killpg(process.pid, signal.SIGKILL)
        if late:
            return None
        raise


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
