"""Reads this process's own memory where a wrong address must do no harm, and copies large parts of it to files.

The kernel copies. It refuses an address that does not exist, where a plain read would end the process. No lock is
taken, so no thread waits for the reader, and a child that is forked meanwhile finds no lock held.
"""

import os
from _struct import Struct
from ctypes import CDLL, PyDLL, Structure, addressof, c_char, c_int, c_long, c_size_t, c_ulong, c_void_p
from errno import ENOMEM
from typing import Any, Optional

from .link import descriptor_identity, high_copy
from .trust import NotTrusted

_BUFFER = 4096  # bytes
_GET_SECCOMP = 21  # of prctl

# Constants of the module mmap. It is not imported: a script that never imports it would find it in ``sys.modules``.
_READ_AND_WRITE, _SHARED = 1 | 2, 1
_FAILED = c_void_p(-1).value
_ROUND = 1 << 16  # bytes: whole pages on every system


class _Piece(Structure):
    _fields_ = [("address", c_void_p), ("size", c_size_t)]


class Memory:
    """A reader of this process's memory, for one thread.

    A copy of a few kB takes a microsecond, and Python's lock is held for it. So no thread of the script's runs amid a
    reading. While more is copied, the script's threads run.

    Raises:
        NotTrusted: the kernel does not let this process read itself.
        OSError: its memory cannot be opened.
    """

    def __init__(self) -> None:
        self._at_once, self._beside = PyDLL(None), CDLL(None)
        self._buffer = (c_char * _BUFFER)()
        self._at = addressof(self._buffer)
        self._descriptor: Optional[int] = None
        if self._at_once.prctl(_GET_SECCOMP, 0, 0, 0, 0) == 0:
            for library in (self._at_once, self._beside):
                library.process_vm_readv.restype = c_long
                library.process_vm_readv.argtypes = [c_int, c_void_p, c_ulong, c_void_p, c_ulong, c_ulong]
            self._pid = os.getpid()
            self._here, self._there = _Piece(), _Piece()
            self._pieces = addressof(self._here), addressof(self._there)
        else:
            # There is a filter of system calls. One that does not list process_vm_readv may kill the process for that
            # call, as those of some sandboxes do.
            for library in (self._at_once, self._beside):
                library.pread.restype, library.pread.argtypes = c_long, [c_int, c_void_p, c_size_t, c_long]
            low = os.open("/proc/self/mem", os.O_RDONLY | os.O_CLOEXEC)
            try:
                self._descriptor = high_copy(low)
            finally:
                os.close(low)
            self._identity = descriptor_identity(self._descriptor)
        if not self.copy(self._at + 8, 8, self._at):
            raise NotTrusted("memory_closed")

    def copy(self, address: int, size: int, to: int) -> bool:
        """Copy *size* bytes from *address* to the buffer at *to*; return whether all of them were there."""
        if size == 0:
            return True
        if not 0 < address < 1 << 56:
            return False
        library = self._at_once if size <= _BUFFER else self._beside
        if self._descriptor is not None:
            # The script may have closed all descriptors and opened others.
            ours = descriptor_identity(self._descriptor) == self._identity
            copied = library.pread(self._descriptor, to, size, address) if ours else 0
        else:
            here, there = self._here, self._there
            here.address, here.size, there.address, there.size = to, size, address, size
            copied = library.process_vm_readv(self._pid, self._pieces[0], 1, self._pieces[1], 1, 0)
        return bool(copied == size)

    def block(self, address: int, size: int) -> Optional[bytes]:
        """Return *size* bytes at *address*, at most 4096; ``None`` if they are not there."""
        return self._buffer.raw[:size] if size <= _BUFFER and self.copy(address, size, self._at) else None

    def values(self, address: int, form: Struct) -> "Optional[tuple[Any, ...]]":
        """Return the values of that *form* at *address*; ``None`` if there is no memory."""
        return form.unpack_from(self._buffer) if self.copy(address, form.size, self._at) else None


class Sheet:
    """The file *path*, made anew when it needs more room; no descriptor of it stays open.

    Only the kernel writes into the file, at an address in memory, so that no content passes through Python. If the file
    system is full or the file was cut short, the kernel returns an error; a write of the agent's would crash the
    process.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._at = self._room = 0
        library = CDLL(None)
        # Not Python's own mmap, which keeps a descriptor.
        self._mmap: Any = library.mmap
        self._mmap.restype, self._mmap.argtypes = c_void_p, [c_void_p, c_size_t, c_int, c_int, c_int, c_long]
        self._munmap: Any = library.munmap
        self._munmap.restype, self._munmap.argtypes = c_int, [c_void_p, c_size_t]

    def room(self, size: int) -> int:
        """Return the address of room for *size* bytes. Earlier content may be lost.

        Raises:
            OSError: there is no room.
        """
        if size > self._room or not self._at:
            self._make((size * 3 // 2 // _ROUND + 1) * _ROUND)
        return self._at

    def close(self) -> None:
        """Release the memory; the file stays, for the engine to read."""
        if self._at:
            self._munmap(self._at, self._room)
        self._at = self._room = 0

    def _make(self, size: int) -> None:
        self.close()
        try:
            os.unlink(self.path)
        except FileNotFoundError:
            pass
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, size)
            at = self._mmap(None, size, _READ_AND_WRITE, _SHARED, descriptor, 0)
            if at in (None, _FAILED):
                raise OSError(ENOMEM, os.strerror(ENOMEM))
        except BaseException:
            os.unlink(self.path)
            raise
        finally:
            os.close(descriptor)
        self._at, self._room = at, size
