"""The errors of recordings."""

import os
from pathlib import Path

from tfmemtop.events import FORMAT
from tfmemtop.events.base import DescribedEnum


class Trouble(DescribedEnum):
    """What is wrong. In curly brackets: the fields of :class:`RecordingError` that belong to it."""

    UNWRITABLE = "unwritable", "cannot record to {path}: {detail}"
    NO_FILE_TO_WRITE = "no_file_to_write", "cannot record to {path}: it is not a regular file"
    TAKEN = "taken", "cannot record to {path}: another tfmemtop is recording there"
    FOREIGN = "foreign", "cannot record to {path}: the file exists and is no tfmemtop recording; it was left alone"
    STOPPED = "stopped", "recording to {path} has stopped: {detail}"
    TOO_LARGE = "too_large", "recording to {path} has stopped: it has grown to {count} MiB; --record FILE has no limit"
    DISK_FULL = "disk_full", "recording to {path} has stopped: less than {count} MiB are free on the disk"

    UNREADABLE = "unreadable", "cannot read {path}: {detail}"
    NO_FILE = "no_file", "{path} is no tfmemtop recording: it is not a regular file"
    EMPTY = "empty", "{path} is no tfmemtop recording: it is empty"
    NO_RECORDING = "no_recording", "{path} is no tfmemtop recording: it does not begin as one"
    OTHER_FORMAT = (
        "other_format",
        f"{{path}} has format {{count}}, and this tfmemtop reads format {FORMAT}: use the version that wrote it",
    )
    HEAD_DAMAGED = "head_damaged", "{path}: the first line, which describes the session, is damaged"


class RecordingError(Exception):
    """The recording at ``path`` cannot be written or read, because of ``trouble``."""

    def __init__(
        self, trouble: Trouble, path: str | os.PathLike[str], detail: str = "", count: int | None = None
    ) -> None:
        super().__init__(trouble.text.format(path=Path(path), detail=detail, count=count))
        self.trouble = trouble
        self.path = Path(path)

    @property
    def text(self) -> str:
        """What is wrong with the recording. The text contains parts from outside that are not made safe here."""
        return str(self)


def reason_of(error: Exception) -> str:
    """Return the system's message for *error*, or its text if there is none."""
    return (isinstance(error, OSError) and error.strerror) or str(error)


def lines_left_out(path: Path, *, damaged: int, unknown: int) -> str:
    """Return how many lines of a recording were left out: damaged lines, and lines that need a newer tfmemtop."""
    kinds = {"damaged": damaged, "unknown": unknown}
    counts = [f"{count} {kind} {'line' if count == 1 else 'lines'}" for kind, count in kinds.items() if count]
    return f"{path}: {' and '.join(counts)} left out"
