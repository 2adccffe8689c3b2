"""The alerts that a terminal receives when a run has ended or memory has run out. Pure."""

from tfmemtop.events import OutOfMemory
from tfmemtop.state.model import RunState
from tfmemtop.units import format_bytes, format_duration
from tfmemtop.words.endings import ending


def alert(news: OutOfMemory | RunState) -> str:
    """Return the alert for *news*: :func:`ran_out` or :func:`ended`."""
    return ran_out(news) if isinstance(news, OutOfMemory) else ended(news)


def ended(run: RunState) -> str:
    """Return the alert for the end of a run: ``run 2 ended with exit code 1 after 00:12:03``."""
    return f"run {run.run} {ending(run.ending)} after {format_duration((run.ended or run.started) - run.started)}"


def ran_out(error: OutOfMemory) -> str:
    """Return the alert for a failed allocation: ``out of memory on GPU:0: AddV2 asked for 1.0 MiB``.

    What is not known is left out.
    """
    where = f" on {error.device}" if error.device else ""
    if error.requested is None:
        return f"out of memory{where}"
    return f"out of memory{where}: {error.operation or 'TensorFlow'} asked for {format_bytes(error.requested)}"
