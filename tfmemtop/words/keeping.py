"""What the keeper writes into the script's output. It imports little, as the keeper does. Pure."""

from tfmemtop.words.signals import signal_name


def farewell(code: int) -> str:
    """Said of an engine that has ended with this exit code, or by signal -*code*, while its script runs."""
    how = f"was ended by {signal_name(-code)}" if code < 0 else "has failed"
    return f"[tfmemtop {how}; the script goes on]"
