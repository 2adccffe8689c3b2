"""Data that several tests share. The first worker that needs it makes it."""

import fcntl
from collections.abc import Callable
from pathlib import Path


def once(shared: Path, name: str, make: Callable[[Path], None]) -> Path:
    """Return the folder *name* in *shared*, filled by *make*. *shared* is the folder that all workers have in common.

    *make* is called in one worker only, with the empty folder; the others wait for it. If *make* raises, this function
    raises the same error, and the next test that needs the folder calls its own *make*.
    """
    folder = shared / name
    folder.mkdir(exist_ok=True)
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        whole = shared / f"{name}.whole"
        if not whole.exists():
            make(folder)
            whole.touch()
    return folder
