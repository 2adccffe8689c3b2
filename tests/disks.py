"""Small file systems: in memory, or one that can be frozen. Writes to it then wait, as for a server that is silent."""

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_FREEZE, _THAW = 0xC0045877, 0xC0045878  # FIFREEZE and FITHAW of linux/fs.h

CAN_FREEZE = pytest.mark.skipif(
    os.getuid() != 0 or not shutil.which("mkfs.ext4") or not Path("/dev/loop-control").exists(),
    reason="freezing needs root, mkfs.ext4 and loop devices",
)


@contextmanager
def mounted(folder: Path) -> Iterator[None]:
    """During the ``with`` block, *folder*, which is made, is a file system of its own."""
    folder.mkdir()
    image = folder.with_suffix(".image")
    with image.open("wb") as file:
        file.truncate(128 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True)
    done = subprocess.run(["mount", "-o", "loop", str(image), str(folder)], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"mounting is not possible: {done.stderr}")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@contextmanager
def frozen(folder: Path) -> Iterator[None]:
    """During the ``with`` block, whoever writes to the file system of *folder* waits."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.ioctl(descriptor, _FREEZE, 0)
        try:
            yield
        finally:
            fcntl.ioctl(descriptor, _THAW, 0)
    finally:
        os.close(descriptor)


@contextmanager
def small_disk(folder: Path, size: str = "64k") -> Iterator[Path]:
    """During the ``with`` block, *folder* is a file system of *size* in memory.

    If this user may not mount one, the test is skipped.
    """
    folder.mkdir(exist_ok=True)
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip(f"mounting is not possible: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)
