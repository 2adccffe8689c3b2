"""Finds the eager tensors that are alive, in one look through all of Python's objects.

TensorFlow keeps no list of them, but Python's garbage collector has one of nearly all objects.
The look is one call into C, a tenth of a second or so in which no other Python code runs. It leaves weak
references only. Of each tensor only attributes are read then: no operation runs, and nothing is read from a device.
"""

import _operator as operator
import gc
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

from .one_step import alive, identity
from .paths import HoldingPath, Search

if TYPE_CHECKING:
    from _weakref import ref
    from collections.abc import Collection
    from types import ModuleType

KIND = "tensors"

_NO_SIZE = {"string", "resource", "variant"}
"""Types whose tensors hold little but pointers, such as one to a variable's own memory."""


class Tensor(NamedTuple):
    """An eager tensor that was alive; ``size`` in bytes."""

    reference: "ref[Any]"
    identity: int
    shape: "tuple[int, ...]"
    dtype: str
    device: str
    size: int

    @property
    def alive(self) -> bool:
        """Whether the tensor is still alive."""
        return self.reference() is not None


class Look(NamedTuple):
    """The tensors that a look has found; ``None``, with the reason in ``hidden``, if no look was possible.

    ``events/inside.py`` has the reasons. ``frozen`` is the number of objects that were not looked at.
    """

    tensors: "Optional[list[Tensor]]"
    hidden: Optional[str] = None
    frozen: Optional[int] = None


class Tensors:
    """Looks for tensors on request."""

    def __init__(self, module: "ModuleType") -> None:
        """*module* is TensorFlow's module of variables, which has imported all that is needed here."""
        self._class: Any = module.ops.EagerTensor
        self._context: Any = module.context
        self._dtype: Any = module.dtypes.as_dtype
        self._asynchronous = False
        # Objects that were frozen before there was a tensor; Python 3.12 itself freezes some.
        self._frozen = gc.get_freeze_count()

    def executor_made(self, enable_async: Any) -> None:
        """Note that the script makes an executor, which may run its operations asynchronously from now on."""
        self._asynchronous |= bool(enable_async)

    def look(self, handles: "Collection[int]") -> Look:
        """Find all tensors that are alive. *handles* are the ``id``s of tensors that must be among them."""
        context = self._context._context
        if context is None:
            return Look([])
        if getattr(context, "_server_def", None) is not None:
            return Look(None, "remote")
        if self._asynchronous or getattr(context, "_default_is_async", False):
            return Look(None, "asynchronous")
        references = _find(self._class)
        frozen = max(0, gc.get_freeze_count() - self._frozen)
        if handles and not frozen and not any(id(reference()) in handles for reference in references):
            return Look(None, "not_shown")
        told = (self._tell(reference) for reference in references)
        found = [tensor for tensor in told if tensor is not None]
        return Look(found, "frozen", frozen) if frozen else Look(found)

    def held(self, found: "list[Tensor]", seconds: float) -> "dict[int, HoldingPath]":
        """Return the paths by which Python holds the *found* tensors, by identity: those found in about *seconds*.

        A tensor must be alive before and after the search: else its identity may be another object's.
        """
        paths = Search({tensor.identity for tensor in found}, self._class, seconds).run() if found else {}
        return {each.identity: paths[each.identity] for each in found if each.identity in paths and each.alive}

    def _tell(self, reference: "ref[Any]") -> Optional[Tensor]:
        tensor = reference()
        if tensor is None:
            return None
        try:
            device = tensor.backing_device
        except ValueError:
            # Another thread is still making it. This attribute must be read first: TensorFlow checks for that
            # here, but a read of such a tensor's type would crash the process.
            return None
        if tensor.is_packed:
            return None
        kind, _, number = device.rpartition("device:")[2].partition(":")
        dtype = self._dtype(tensor._datatype_enum())
        if kind not in ("CPU", "GPU") or dtype.name in _NO_SIZE:
            return None
        shape = tensor._shape_tuple()
        size = dtype.size
        for extent in shape:
            size *= extent
        return Tensor(reference, identity(tensor), shape, dtype.name, f"{kind}:{number}", size)


def _find(kind: type) -> "list[ref[Any]]":
    """Return weak references to all objects of exactly *kind*."""
    return alive(lambda everything: map(operator.is_, map(type, everything), repeat(kind)))
