"""The recordings that are kept of sessions, one for each session, and the end of what is kept.

If the user wanted a recording elsewhere, there is a symbolic link to it here, so that all sessions are found in one
place.
"""

import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path

from tfmemtop.engine.stream import kernel_starts
from tfmemtop.engine.stream.folders import sessions
from tfmemtop.events.recording import RecordingError, Trouble, Writer
from tfmemtop.events.recording.errors import reason_of
from tfmemtop.home import output_folder
from tfmemtop.units import GIB

_ENDING = ".jsonl.gz"
_OTHER_ENDINGS = (".log", *kernel_starts.ENDINGS)  # outputs, and the files of kernels
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
        raise RecordingError(Trouble.UNWRITABLE, error.filename or session, reason_of(error)) from error


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
    for entry, path in sorted(found, key=_newest_first):
        old = entry.st_mtime < oldest or not path.exists()  # a link may lead to a recording that was removed
        if path.name.endswith(_ENDING):
            left -= entry.st_size
            old |= left < 0
        if old and str(path) not in in_use and not is_written(path):
            path.unlink(missing_ok=True)


def _newest_first(found: tuple[os.stat_result, Path]) -> float:
    return -found[0].st_mtime
