"""What can go wrong with a recording, as facts; ``words/recording.py`` says it to the user."""

import os
from enum import Enum
from pathlib import Path


class Trouble(Enum):
    """What is wrong; in brackets, what else of a :class:`RecordingError` belongs to it."""

    UNWRITABLE = "unwritable"  # (detail: the error)
    NO_FILE_TO_WRITE = "no_file_to_write"  # but a folder, a pipe or the like
    TAKEN = "taken"  # another tfmemtop is recording there
    FOREIGN = "foreign"  # the file there is no recording, and was left alone
    STOPPED = "stopped"  # what was being written (detail: the error)
    TOO_LARGE = "too_large"  # the user did not ask for this one (count: MiB it may have)
    DISK_FULL = "disk_full"  # nearly; a recording that the user did not ask for leaves room (count: MiB)

    UNREADABLE = "unreadable"  # (detail: the error)
    NO_FILE = "no_file"  # but a folder, a pipe or the like
    EMPTY = "empty"
    NO_RECORDING = "no_recording"  # it does not begin as one
    NEWER = "newer"  # than this tfmemtop (count: its format)
    HEAD_DAMAGED = "head_damaged"  # the first line, which describes the session


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
    """What the system says of *error*."""
    return (isinstance(error, OSError) and error.strerror) or str(error)
