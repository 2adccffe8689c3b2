"""Finds where the buffers of tensors and variables lie: no operation runs and nothing is waited for."""

import sys
from ctypes import CDLL, PyDLL, Structure, byref, c_uint64, c_void_p, py_object, sizeof
from os import RTLD_LAZY, RTLD_NOLOAD
from typing import Any, Optional

from .loading import load

_MODULE = "tensorflow.python._pywrap_tfe"
_FUNCTIONS = (
    "_Z18EagerTensor_HandlePK7_object",
    "_ZNK10tensorflow12TensorHandle4TypeEv",
    "_ZNK10tensorflow12TensorHandle7IsReadyEv",
    "_ZNK10tensorflow12TensorHandle6TensorEPPKNS_6TensorE",
)
_DONE = 1


class _HandleFunctions(Structure):
    _fields_ = [("size", c_uint64), *((name, c_void_p) for name in ("handle_of", "type", "is_ready", "tensor"))]


def reader(path: str, checksum: int) -> Optional[Any]:
    """Return the C function that returns the address of an eager tensor's buffer, from the library at *path*.

    For a variable's handle it is that of the variable's buffer, and 0 where it cannot be read at once. The function
    neither keeps the tensor nor makes containers that stay. Return ``None`` if this TensorFlow does not export what is
    needed.

    Raises:
        NotTrusted, OSError: as :func:`~.loading.load` raises them.
    """
    library = load(path, checksum)
    module: Any = sys.modules.get(_MODULE)
    file = None if module is None else vars(module).get("__file__")
    if type(file) is not str:
        return None
    try:
        # Only what TensorFlow has loaded already; this call loads none.
        tensorflow = CDLL(file, mode=RTLD_NOLOAD | RTLD_LAZY)
        found = [c_void_p.from_buffer(getattr(tensorflow, name)) for name in _FUNCTIONS]
        if library.tfmemtop_handle_functions(byref(_HandleFunctions(sizeof(_HandleFunctions), *found))) != _DONE:
            return None
        address = PyDLL(None, handle=library._handle).tfmemtop_address
        address.restype, address.argtypes = c_uint64, (py_object,)
        return address
    except (OSError, AttributeError):
        return None
