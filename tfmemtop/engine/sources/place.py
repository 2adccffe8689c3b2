"""What kind of system this is: whether processes have the numbers of a container, and whether the system is WSL."""

import os
from pathlib import Path
from typing import Literal

_FIRST_NAMESPACE = "pid:[4026531836]"  # PROC_PID_INIT_INO of the kernel's include/linux/proc_ns.h

Namespace = Literal["first", "other", "unknown"]


def pid_namespace(root: Path = Path("/")) -> Namespace:
    """Return which namespace numbers the processes.

    It is ``first`` if processes have the numbers of the machine's kernel, ``other`` if not, as in a container, and
    ``unknown`` if this cannot be read.
    """
    try:
        name = os.readlink(root / "proc/self/ns/pid")  # noqa: PTH115 (a link that points to no path)
    except OSError:
        return "unknown"
    return "first" if name == _FIRST_NAMESPACE else "other"


def is_wsl(root: Path = Path("/")) -> bool:
    """Return whether this is the Windows Subsystem for Linux."""
    try:
        return "microsoft" in (root / "proc/version").read_text(errors="replace").lower()
    except OSError:
        return False
