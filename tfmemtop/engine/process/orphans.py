"""Lets this process collect the script's orphans: processes whose own parents have ended."""

import ctypes

_PR_SET_CHILD_SUBREAPER = 36


def collect_orphans() -> None:
    """Become the parent of each descendant whose own parent ends, in place of the first process of the container.

    That first process may be the screen. It does not wait for processes that it did not start, so each orphan would
    stay a zombie.
    """
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
