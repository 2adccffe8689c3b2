"""A stand-in for ``struct``: values as they lie in memory."""

from _struct import Struct, calcsize, pack, unpack, unpack_from

__all__ = ["Struct", "calcsize", "pack", "unpack", "unpack_from"]
