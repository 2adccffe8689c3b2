"""The errors of recordings."""

from pathlib import Path


class RecordingError(Exception):
    """A recording cannot be written or read. The message is for the user, but not made safe yet."""


def reason_of(error: Exception) -> str:
    """Return the system's message for *error*, or its text if there is none."""
    return (isinstance(error, OSError) and error.strerror) or str(error)


def stopped(path: Path | str, why: str) -> RecordingError:
    """Return the error of a recording to *path* that goes no further, because of *why*."""
    return RecordingError(f"recording to {path} has stopped: {why}")


def unwritable(path: Path | str, why: str) -> RecordingError:
    """Return the error of a recording that cannot be begun at *path*, because of *why*."""
    return RecordingError(f"cannot record to {path}: {why}")


def lines_left_out(path: Path, *, damaged: int, unknown: int) -> str:
    """Return how many lines of a recording were left out: damaged lines, and lines that need a newer tfmemtop."""
    kinds = {"damaged": damaged, "unknown": unknown}
    counts = [f"{count} {kind} {'line' if count == 1 else 'lines'}" for kind, count in kinds.items() if count]
    return f"{path}: {' and '.join(counts)} left out"
