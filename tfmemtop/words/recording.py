"""The error texts for recordings that cannot be written or read, and for lines that were left out. Pure."""

from pathlib import Path

from tfmemtop.events import FORMAT
from tfmemtop.recording.errors import RecordingError, Trouble

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
