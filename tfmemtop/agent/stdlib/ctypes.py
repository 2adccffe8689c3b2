"""A stand-in for ``ctypes``: C's types, structures and shared libraries."""

import _ctypes
from _ctypes import Structure, addressof, byref, sizeof
from typing import Any, Optional

__all__ = ["CDLL", "PyDLL", "Structure", "addressof", "byref", "sizeof"]


def _simple(code: str) -> Any:
    kind: Any = type(_ctypes._SimpleCData)
    return kind("simple_" + code, (_ctypes._SimpleCData,), {"_type_": code})


# These sizes are right on every machine that TensorFlow runs on.
c_char, c_ubyte, c_int, c_uint, c_long, c_ulong, c_char_p, c_void_p, py_object = map(_simple, "cBiIlLzPO")
c_uint8, c_int64, c_uint64, c_size_t = c_ubyte, c_long, c_ulong, c_ulong


class _Function(_ctypes.CFuncPtr):
    _flags_ = _ctypes.FUNCFLAG_CDECL
    _restype_ = c_int


class _LockedFunction(_ctypes.CFuncPtr):
    _flags_ = _ctypes.FUNCFLAG_CDECL | _ctypes.FUNCFLAG_PYTHONAPI
    _restype_ = c_int


class CDLL:
    """A shared library; its functions are its attributes, and return an ``int`` unless their ``restype`` is set.

    Raises:
        OSError: the library cannot be loaded.
    """

    _kind: Any = _Function

    def __init__(self, name: Optional[str], mode: int = 0, handle: Optional[int] = None) -> None:
        """*handle* is that of a library that is loaded already."""
        self._handle = _ctypes.dlopen(name, mode) if handle is None else handle  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> Any:
        function = self._kind((name, self))
        setattr(self, name, function)
        return function


class PyDLL(CDLL):
    """A shared library whose functions are called with Python's lock held."""

    _kind = _LockedFunction
