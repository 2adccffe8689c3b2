"""What kind of system this is: whether processes have the numbers of a container, and whether the system is WSL."""

import os
from pathlib import Path
from typing import Literal

_FIRST_NAMESPACE = "pid:[4026531836]"  # PROC_PID_INIT_INO of the kernel's include/linux/proc_ns.h

_GPU_FILES = ("/dev/nvidia", "/dev/dxg", "/dev/nvmap", "/dev/nvhost")
_CONTROL = "/dev/nvidiactl"  # a process that only queries the driver opens this file alone

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


def uses_gpu(pid: int, root: Path = Path("/")) -> bool:
    """Return whether process *pid* of this namespace has an NVIDIA GPU open.

    ``False`` also if its file descriptors cannot be read.
    """
    folder = root / "proc" / str(pid) / "fd"
    try:
        targets = [os.readlink(folder / name) for name in os.listdir(folder)]  # noqa: PTH115, PTH208 (each second)
    except OSError:
        return False
    return any(target.startswith(_GPU_FILES) and target != _CONTROL for target in targets)
