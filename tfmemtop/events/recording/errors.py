"""The errors of recordings, as values; ``words/recording.py`` has the texts for users."""

import os
from enum import Enum
from pathlib import Path

from tfmemtop.events import FORMAT


class Trouble(Enum):
    """What is wrong. In brackets: the further fields of :class:`RecordingError` that belong to it."""

    UNWRITABLE = "unwritable"  # (detail: the error)
    NO_FILE_TO_WRITE = "no_file_to_write"  # the path is a folder, a pipe or the like
    TAKEN = "taken"  # another tfmemtop is recording there
    FOREIGN = "foreign"  # the file there is not a recording, and was not changed
    STOPPED = "stopped"  # a write failed while recording (detail: the error)
    TOO_LARGE = "too_large"  # a recording that the user did not request has reached its limit (count: MiB)
    DISK_FULL = "disk_full"  # nearly full; a recording that the user did not request leaves room (count: MiB)

    UNREADABLE = "unreadable"  # (detail: the error)
    NO_FILE = "no_file"  # the path is a folder, a pipe or the like
    EMPTY = "empty"
    NO_RECORDING = "no_recording"  # the file does not begin like a recording
    OTHER_FORMAT = "other_format"  # another version of tfmemtop wrote it (count: its format)
    HEAD_DAMAGED = "head_damaged"  # the first line, which describes the session, is damaged


class RecordingError(Exception):
    """The recording at ``path`` cannot be written or read, because of ``trouble``."""

    def __init__(
        self, trouble: Trouble, path: str | os.PathLike[str], detail: str = "", count: int | None = None
    ) -> None:
        super().__init__(f"{os.fspath(path)}: {detail or trouble.value}")
        self.trouble = trouble
        self.path = Path(path)
        self.detail = detail
        self.count = count


def reason_of(error: Exception) -> str:
    """Return the system's message for *error*, or its text if there is none."""
    return (isinstance(error, OSError) and error.strerror) or str(error)


_TEXTS = {
    Trouble.UNWRITABLE: "cannot record to {path}: {detail}",
    Trouble.NO_FILE_TO_WRITE: "cannot record to {path}: it is not a regular file",
    Trouble.TAKEN: "cannot record to {path}: another tfmemtop is recording there",
    Trouble.FOREIGN: "cannot record to {path}: the file exists and is no tfmemtop recording; it was left alone",
    Trouble.STOPPED: "recording to {path} has stopped: {detail}",
    Trouble.TOO_LARGE: "recording to {path} has stopped: it has grown to {count} MiB",
    Trouble.DISK_FULL: "recording to {path} has stopped: less than {count} MiB are free on the disk",
    Trouble.UNREADABLE: "cannot read {path}: {detail}",
    Trouble.NO_FILE: "{path} is no tfmemtop recording: it is not a regular file",
    Trouble.EMPTY: "{path} is no tfmemtop recording: it is empty",
    Trouble.NO_RECORDING: "{path} is no tfmemtop recording: it does not begin as one",
    Trouble.OTHER_FORMAT: f"{{path}} has format {{count}}, and this tfmemtop reads format {FORMAT}: "
    "use the version that wrote it",
    Trouble.HEAD_DAMAGED: "{path}: the first line, which describes the session, is damaged",
}


def recording_text(error: RecordingError) -> str:
    """Return what is wrong with the recording. The text contains parts from outside that are not made safe here."""
    return _TEXTS[error.trouble].format(path=error.path, detail=error.detail, count=error.count)


def lines_left_out(path: Path, *, damaged: int, unknown: int) -> str:
    """Return how many lines of a recording were left out: damaged lines, and lines that need a newer tfmemtop."""
    kinds = {"damaged": damaged, "unknown": unknown}
    counts = [f"{count} {kind} {'line' if count == 1 else 'lines'}" for kind, count in kinds.items() if count]
    return f"{path}: {' and '.join(counts)} left out"
