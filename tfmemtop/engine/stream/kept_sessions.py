"""The recordings that are kept of sessions, one for each session, and the end of what is kept.

If the user wanted a recording elsewhere, there is a symbolic link to it here, so that all sessions are found in one
place. Beside the recordings are two files for each Jupyter kernel, which all its starts share: one with their sessions,
one with the settings that are chosen for the next start. Their names are made from the text that is the same for all
starts of a kernel (``shared`` of :class:`tfmemtop.engine.process.launch.Kernel`); here, *kernel* is that text.
"""

import fcntl
import hashlib
import os
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from tfmemtop.engine.stream.folders import sessions
from tfmemtop.events.recording import Writer
from tfmemtop.events.recording.lines import reason_of, unwritable
from tfmemtop.home import output_folder
from tfmemtop.settings import Settings
from tfmemtop.units import GIB

_KERNEL_ENDINGS = _SETTINGS, _SESSIONS = ".kernel.json", ".kernel.sessions"
"""How the names of these files end."""
_MOST_STARTS = 20
"""How many earlier starts :func:`begin_kernel` returns."""


def choose_for_kernel(kernel: str, settings: Settings) -> None:
    """Store *settings* for the next starts of the kernel. The file is replaced as a whole or not at all.

    Raises:
        OSError: the file cannot be written.
    """
    path = _kernel_file(kernel, _SETTINGS)
    new = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        new.touch(mode=0o600)
        new.write_bytes(msgspec.json.encode(settings))
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def chosen_for_kernel(kernel: str) -> Settings | None:
    """Return the settings chosen for the kernel; ``None`` if there are none, or they cannot be read."""
    try:
        return msgspec.json.decode(_kernel_file(kernel, _SETTINGS).read_bytes(), type=Settings)
    except (OSError, msgspec.DecodeError):
        return None


def begin_kernel(kernel: str, session: str) -> tuple[int, tuple[str, ...]]:
    """Record that *session* is the newest start of the kernel.

    Return the number of this start, counted from 1, and the sessions of the newest starts before it.

    Raises:
        OSError: the file cannot be written or read.
    """
    path = _kernel_file(kernel, _SESSIONS)
    # Each line is appended in one write, so that both of two simultaneous starts are recorded.
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(f"{session}\n".encode())
    noted = path.read_text("utf-8", "replace").split()
    before = noted[: len(noted) - 1 - noted[::-1].index(session)]
    return len(before) + 1, tuple(before[-_MOST_STARTS:])


def starts_after(session: str) -> list[str]:
    """Return the sessions of the starts of the same kernel that came after *session*, oldest first."""
    try:
        for path in output_folder().glob(f"*{_SESSIONS}"):
            noted = path.read_text("utf-8", "replace").split()
            if session in noted:
                return noted[noted.index(session) + 1 :]
    except OSError:
        pass  # none is known
    return []


def _kernel_file(kernel: str, ending: str) -> Path:
    name = hashlib.sha256(os.fsencode(kernel)).hexdigest()[:16]
    return output_folder() / f"{name}{ending}"


_ENDING = ".jsonl.gz"
_OTHER_ENDINGS = (".log", *_KERNEL_ENDINGS)  # outputs, and the files of kernels
_KEPT_DAYS = 30
_KEPT_BYTES = GIB


def place_for(session: str) -> Path:
    """Return the path at which the recording of *session* is kept.

    Raises:
        OSError: the folder for recordings cannot be made.
    """
    return output_folder() / f"{session}{_ENDING}"


def open_recording(session: str) -> Writer:
    """Return a writer to the place at which the recording of *session* is kept.

    Raises:
        RecordingError: the file cannot be written.
    """
    try:
        return Writer(place_for(session))
    except OSError as error:
        raise unwritable(error.filename or session, reason_of(error)) from error


def kept_elsewhere(session: str, path: Path) -> None:
    """Make a link to the recording of *session*, which is written to *path*. If that fails, there is no link."""
    with suppress(OSError):
        if path.is_file():
            place_for(session).symlink_to(path.absolute())


def kept_recordings() -> dict[str, Path]:
    """Return the paths of the kept recordings, by session."""
    try:
        found = output_folder().glob(f"*{_ENDING}")
        return {path.name.removesuffix(_ENDING): path for path in found if path.is_file()}
    except OSError:
        return {}


def is_written(path: Path) -> bool:
    """Return whether a recorder writes to *path* now."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def forget_old(size: int = _KEPT_BYTES) -> None:
    """Remove what is older than thirty days, and the oldest recordings if all together have more than *size* bytes.

    Outputs of sessions in progress and recordings that are being written stay. If a recording is elsewhere, only the
    link to it is removed.

    Raises:
        OSError: a file cannot be removed, or the folder cannot be read.
    """
    in_use = {session.output_path for session in sessions()}
    oldest, left = time.time() - _KEPT_DAYS * 86_400, size
    found = []
    for path in output_folder().iterdir():
        if path.name.endswith((_ENDING, *_OTHER_ENDINGS)):
            with suppress(FileNotFoundError):  # another session has just removed it
                found.append((path.lstat(), path))
    for entry, path in sorted(found, key=lambda one: -one[0].st_mtime):
        old = entry.st_mtime < oldest or not path.exists()  # a link may lead to a recording that was removed
        if path.name.endswith(_ENDING):
            left -= entry.st_size
            old |= left < 0
        if old and str(path) not in in_use and not is_written(path):
            path.unlink(missing_ok=True)
