"""The errors of recordings, as values; ``words/recording.py`` has the texts for users."""

import os
from enum import Enum
from pathlib import Path


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
