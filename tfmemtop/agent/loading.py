"""Loads a library as it was when it was checked: from a sealed copy in memory, whatever happens to its file.

If a mapped file shrinks or is overwritten, every process that has it mapped may crash, even long after the load.
"""

import _stat as stat
import os
from binascii import crc32
from ctypes import CDLL
from fcntl import fcntl
from os import close, fstat, geteuid
from typing import Any

from .link import descriptor_identity
from .trust import NotTrusted

_LARGEST = 64 << 20  # bytes; a library has some ten thousand
_MFD_CLOEXEC, _MFD_ALLOW_SEALING, _MFD_NOEXEC_SEAL = 1, 2, 8
_F_ADD_SEALS, _NO_MORE_CHANGES = 1033, 0b1111
_READING = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_LOADING = os.RTLD_NOW | os.RTLD_LOCAL
_libc = CDLL(None)
_slashes: "list[str]" = []


def load(path: str, checksum: int) -> Any:
    """Load the library at *path*, with all its symbols; *checksum* is its length and its CRC-32 in one number.

    Raises:
        NotTrusted: other users may write to the file, its content has changed, or there is no way to load it.
        OSError: the file cannot be read or loaded.
    """
    content = _read(path)
    if len(content) << 32 | crc32(content) != checksum:
        raise NotTrusted("file_changed")
    copy = _in_memory(content)
    identity = descriptor_identity(copy)
    try:
        # The loader takes equal paths for the same library. So each load has a path of its own, with one slash more
        # than the one before, and none is in /proc/self/fd, which other code may use.
        _slashes.append("/")
        return CDLL(f"/proc/thread-self/fd{''.join(_slashes)}{copy}", mode=_LOADING)
    finally:
        # The script may meanwhile have closed all descriptors and opened its own.
        if descriptor_identity(copy) == identity:
            close(copy)


def _read(path: str) -> bytes:
    with open(path, "rb", opener=lambda name, _: os.open(name, _READING)) as file:
        found = fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_size > _LARGEST:
            raise NotTrusted("no_library")
        if found.st_uid not in (0, geteuid()) or found.st_mode & 0o022:
            raise NotTrusted("writable")
        return file.read(_LARGEST)


def _in_memory(content: bytes) -> int:
    """Return the descriptor of a new file in memory with *content*, which can no longer be changed."""
    try:
        create = _libc.memfd_create
    except AttributeError:
        raise NotTrusted("no_memfd") from None
    # Some systems require the flag that forbids running the file as a program. Kernels before 6.3 do not have the flag.
    for flags in (_MFD_NOEXEC_SEAL | _MFD_CLOEXEC, _MFD_ALLOW_SEALING | _MFD_CLOEXEC):
        copy = int(create(b"tfmemtop-probe", flags))
        if copy >= 0:
            break
    else:
        raise NotTrusted("no_memory_file")
    try:
        with open(copy, "wb", closefd=False) as file:
            file.write(content)
        fcntl(copy, _F_ADD_SEALS, _NO_MORE_CHANGES)
    except BaseException:
        close(copy)
        raise
    return copy
