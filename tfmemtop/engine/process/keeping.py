"""The lines that tfmemtop writes into the script's output. Like the keeper, this module imports little. Pure."""

from tfmemtop.exit_codes import signal_name


def farewell(code: int) -> str:
    """Return the line about an engine that has ended while its script runs.

    *code* is its exit code, or if negative, the negated number of the signal that ended it.
    """
    how = f"was ended by {signal_name(-code)}" if code < 0 else "has failed"
    return f"[tfmemtop {how}; the script goes on]"


def left_out(count: int, continues_at: int = 0) -> str:
    """Return the line in place of *count* bytes; where it is not 0, the file continues at its byte *continues_at*."""
    where = f", up to byte {continues_at:015d} of this file" if continues_at else ""
    return f"[tfmemtop: {count:015d} bytes left out here{where}]"
