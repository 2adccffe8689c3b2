"""A file system that does not answer: one in user space (FUSE) whose program reads no request."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_MNT_DETACH = 2

CAN_MOUNT = pytest.mark.skipif(
    os.getuid() != 0 or not os.access("/dev/fuse", os.R_OK | os.W_OK), reason="mounting needs root and /dev/fuse"
)


@contextmanager
def silent(folder: Path) -> Iterator[None]:
    """During the ``with`` block, nobody who uses *folder* gets an answer. Afterwards, those who wait get an error."""
    libc = ctypes.CDLL(None, use_errno=True)
    device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    try:
        options = f"fd={device},rootmode=40000,user_id=0,group_id=0".encode()
        if libc.mount(b"silent", bytes(folder), b"fuse", 0, options) != 0:
            pytest.skip(f"mounting is not possible: {os.strerror(ctypes.get_errno())}")
        try:
            yield
        finally:
            libc.umount2(bytes(folder), _MNT_DETACH)
    finally:
        os.close(device)
