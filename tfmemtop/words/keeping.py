"""The text that the keeper writes into the script's output. Like the keeper, this module imports little. Pure."""

from tfmemtop.words.signals import signal_name


def farewell(code: int) -> str:
    """Return the line about an engine that has ended while its script runs.

    *code* is its exit code, or if negative, the negated number of the signal that ended it.
    """
    how = f"was ended by {signal_name(-code)}" if code < 0 else "has failed"
    return f"[tfmemtop {how}; the script goes on]"
