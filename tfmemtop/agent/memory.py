"""Reads this process's own memory where a wrong address must do no harm.

The kernel copies. It refuses an address that does not exist, where a plain read would end the process. No lock is
taken, so no thread waits for the reader, and a child that is forked meanwhile finds no lock held.
"""

from _struct import Struct
from ctypes import CDLL, Structure, addressof, c_char, c_int, c_long, c_size_t, c_ulong, c_void_p
from os import O_CLOEXEC, O_RDONLY, close, getpid
from os import open as open_file
from typing import Any, Callable, Optional

from .link import descriptor_identity, high_copy
from .trust import NotTrusted

_BUFFER = 4096  # bytes
_GET_SECCOMP = 21  # of prctl


class _Piece(Structure):
    _fields_ = [("address", c_void_p), ("size", c_size_t)]


class Memory:
    """A reader of this process's memory, for one thread.

    *regained* is called after each copy, during which the script's threads may have run.

    Raises:
        NotTrusted: the kernel does not let this process read itself.
        OSError: its memory cannot be opened.
    """

    def __init__(self, regained: "Callable[[], object]" = bool) -> None:
        library = CDLL(None)
        self._regained = regained
        self._buffer = (c_char * _BUFFER)()
        self._at = addressof(self._buffer)
        self._descriptor: Optional[int] = None
        prctl = library.prctl
        prctl.restype, prctl.argtypes = c_int, [c_int, c_ulong, c_ulong, c_ulong, c_ulong]
        if prctl(_GET_SECCOMP, 0, 0, 0, 0) == 0:
            self._readv: Any = library.process_vm_readv
            self._readv.restype = c_long
            self._readv.argtypes = [c_int, c_void_p, c_ulong, c_void_p, c_ulong, c_ulong]
            self._pid = getpid()
            self._here, self._there = _Piece(), _Piece()
            self._pieces = addressof(self._here), addressof(self._there)
        else:
            # There is a filter of system calls. One that does not list process_vm_readv may kill the process for that
            # call, as those of some sandboxes do.
            self._pread: Any = library.pread
            self._pread.restype, self._pread.argtypes = c_long, [c_int, c_void_p, c_size_t, c_long]
            low = open_file("/proc/self/mem", O_RDONLY | O_CLOEXEC)
            try:
                self._descriptor = high_copy(low)
            finally:
                close(low)
            self._identity = descriptor_identity(self._descriptor)
        if not self.copy(self._at + 8, 8, self._at):
            raise NotTrusted("memory_closed")

    def copy(self, address: int, size: int, to: int) -> bool:
        """Copy *size* bytes from *address* to the buffer at *to*; return whether all of them were there."""
        if size == 0:
            return True
        if not 0 < address < 1 << 56:
            return False
        if self._descriptor is not None:
            # The script may have closed all descriptors and opened others.
            ours = descriptor_identity(self._descriptor) == self._identity
            copied = self._pread(self._descriptor, to, size, address) if ours else 0
        else:
            here, there = self._here, self._there
            here.address, here.size, there.address, there.size = to, size, address, size
            copied = self._readv(self._pid, self._pieces[0], 1, self._pieces[1], 1, 0)
        self._regained()
        return bool(copied == size)

    def block(self, address: int, size: int) -> Optional[bytes]:
        """Return *size* bytes at *address*, at most 4096; ``None`` if they are not there."""
        return self._buffer.raw[:size] if size <= _BUFFER and self.copy(address, size, self._at) else None

    def values(self, address: int, form: Struct) -> "Optional[tuple[Any, ...]]":
        """Return the values of that *form* at *address*; ``None`` if there is no memory."""
        return form.unpack_from(self._buffer) if self.copy(address, form.size, self._at) else None
