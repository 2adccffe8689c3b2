"""A file in the session's folder, through which large data goes to the engine.

Only the kernel writes into the file, at an address in memory, so that no content passes through Python. If the file
system is full or the file was cut short, the kernel returns an error; a write of the agent's would crash the process.
"""

from ctypes import CDLL, c_int, c_long, c_size_t, c_void_p
from errno import ENOMEM
from os import O_CLOEXEC, O_CREAT, O_EXCL, O_NOFOLLOW, O_RDWR, close, posix_fallocate, strerror, unlink
from os import open as open_file
from typing import Any

# Constants of the module mmap. It is not imported: a script that never imports it would find it in ``sys.modules``.
_READ_AND_WRITE, _SHARED = 1 | 2, 1
_FAILED = c_void_p(-1).value
_ROUND = 1 << 16  # bytes: whole pages on every system


class Sheet:
    """The file *path*, made anew when it needs more room; no descriptor of it stays open."""

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
            unlink(self.path)
        except FileNotFoundError:
            pass
        descriptor = open_file(self.path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        try:
            posix_fallocate(descriptor, 0, size)
            at = self._mmap(None, size, _READ_AND_WRITE, _SHARED, descriptor, 0)
            if at in (None, _FAILED):
                raise OSError(ENOMEM, strerror(ENOMEM))
        except BaseException:
            unlink(self.path)
            raise
        finally:
            close(descriptor)
        self._at, self._room = at, size
