"""Keeps Python's garbage collector out of the sampler's thread.

A collection runs in the thread whose allocation made it due, and with it the finalizers of what it finds. Those
of the script would run in a thread it does not know, and some may run in one only: a window of Tk's that is
taken apart elsewhere ends the process.
"""

import gc

_NEVER = 1 << 30  # objects

_before: "list[tuple[int, int, int]]" = []


def postpone() -> None:
    """Let no collection become due until :func:`resume`."""
    # Not by gc.disable: whether the script has called that too in the meantime could not be seen.
    _before.append(gc.get_threshold())
    gc.set_threshold(_NEVER, _NEVER, _NEVER)


def resume() -> None:
    """End it, also in a forked child, which has no sampler; thresholds that the script has set since remain."""
    if _before:
        before = _before.pop()
        if gc.get_threshold()[0] == _NEVER:
            gc.set_threshold(*before)
