"""The eager tensors that are alive, found in one look through all of Python's objects.

TensorFlow keeps no list of them, but Python's garbage collector has one of nearly all objects.
The look is one call into C, a tenth of a second or so in which no other Python code runs. It leaves weak
references only; what is asked of a tensor then runs no operation and reads nothing from a device.
"""

import _operator as operator
import gc
import sys
from _weakref import ref
from itertools import chain, compress, count, repeat, starmap
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

if TYPE_CHECKING:
    from collections.abc import Collection
    from types import ModuleType

KIND = "tensors"

_NO_SIZE = {"string", "resource", "variant"}
"""Types whose tensors hold little but pointers: to a variable's own memory, say."""
_CONTAINER = 100_000  # items of a list that are looked at for names

_ASYNCHRONOUS = "The script runs operations asynchronously: to ask a tensor for its shape would wait for them."
_REMOTE = "The script uses TensorFlow on other machines: to ask a tensor for its shape could wait for them."
_NOT_SHOWN = "Python's garbage collector does not show this TensorFlow's tensors."


class Tensor(NamedTuple):
    """An eager tensor that was alive; ``size`` in bytes."""

    reference: "ref[Any]"
    shape: "tuple[int, ...]"
    dtype: str
    device: str
    size: int


class Look(NamedTuple):
    """What a look has found; ``None`` and the reason in ``unseen`` if there could be none.

    With tensors found, ``unseen`` says where none were looked for.
    """

    tensors: "Optional[list[Tensor]]"
    unseen: str = ""


class Tensors:
    """Looks for tensors when told to."""

    def __init__(self, module: "ModuleType") -> None:
        """*module* is TensorFlow's of variables, which has imported all that is needed here."""
        self._class: Any = module.ops.EagerTensor
        self._context: Any = module.context
        self._dtype: Any = module.dtypes.as_dtype
        self._asynchronous = False
        # What is put aside before there is a tensor; Python 3.12 does so itself.
        self._frozen = gc.get_freeze_count()

    def executor_made(self, enable_async: Any) -> None:
        """The script makes an executor, which may run its operations asynchronously from now on."""
        self._asynchronous |= bool(enable_async)

    def look(self, handles: "Collection[int]") -> Look:
        """Find all that are alive. *handles* are the ``id``s of tensors that must be among them."""
        context = self._context._context
        if context is None:
            return Look([])
        if getattr(context, "_server_def", None) is not None:
            return Look(None, _REMOTE)
        if self._asynchronous or getattr(context, "_default_is_async", False):
            return Look(None, _ASYNCHRONOUS)
        references = _find(self._class)
        frozen = max(0, gc.get_freeze_count() - self._frozen)
        unseen = f"{frozen:,} objects that the script put aside with gc.freeze were not looked at." if frozen else ""
        if handles and not frozen and not any(id(reference()) in handles for reference in references):
            return Look(None, _NOT_SHOWN)
        told = (self._tell(reference) for reference in references)
        return Look([tensor for tensor in told if tensor is not None], unseen)

    def _tell(self, reference: "ref[Any]") -> Optional[Tensor]:
        tensor = reference()
        if tensor is None:
            return None
        try:
            device = tensor.backing_device
        except ValueError:
            # Another thread is still making it. This must be asked first: TensorFlow checks for that here,
            # but to ask such a tensor for its type would end the process.
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
        return Tensor(reference, shape, dtype.name, f"{kind}:{number}", size)


def _find(kind: type) -> "list[ref[Any]]":
    """All objects of exactly *kind*.

    Not by ``gc.get_referrers``, though it lists only those: on Python 3.11 it crashes where an object that it
    visits has a dict made for that, as pybind11's have, and this sets off a collection.
    """
    everything: list[Any] = []
    chosen = map(operator.is_, map(type, everything), repeat(kind))
    # One step of the interpreter from filling the list to emptying it, in which no other thread can take its
    # turn: what the script lets go of is never held by us.
    found: list[Any] = list(
        chain(
            map(everything.extend, starmap(gc.get_objects, ((),))),
            map(ref, compress(everything, chosen)),
            starmap(everything.clear, ((),)),
        )
    )
    return found[1:-1]


def text_of(holder: str, key: Any) -> str:
    """``holder[key]``, or the variable *holder* itself if *key* is ``None``."""
    return holder if key is None else f"{holder}[{key!r}]"


def names() -> "dict[int, tuple[str, Any]]":
    """What the script's global variables are called, and the items of its global lists and dicts, by ``id``.

    Each is the name of what holds it and the key or index there, ``None`` for a variable itself. Lists in such dicts
    are looked into as well, as ``history["loss"]`` often is. An ``id`` says something only of what was alive before and
    still is afterwards.
    """
    space = getattr(sys.modules.get("__main__"), "__dict__", None)
    if type(space) is not dict:
        return {}
    direct = _identities(space)
    known: dict[int, tuple[str, Any]] = {}
    for name, _, kind in direct:
        held: Any = space.get(name) if kind in (list, tuple, dict) and type(name) is str else None
        _add_items(known, name, held)
        if type(held) is dict and len(held) <= _CONTAINER:
            named = [(key, item, kind) for key, item, kind in _identities(held) if type(key) in (str, int)]
            known.update((item, (name, key)) for key, item, _ in named)
            for key, _, kind in named:
                if kind in (list, tuple):
                    _add_items(known, text_of(name, key), held.get(key))
    known.update((item, (name, None)) for name, item, _ in direct if type(name) is str)
    return known


def _add_items(known: "dict[int, tuple[str, Any]]", name: str, held: Any) -> None:
    if type(held) in (list, tuple) and len(held) <= _CONTAINER:
        known.update(zip(list(map(id, held)), zip(repeat(name), count())))


def _identities(mapping: "dict[Any, Any]") -> "list[tuple[Any, int, type]]":
    """Key, ``id`` and class of each item, without a reference to it; none if another thread changes it now."""
    try:
        return list(zip(mapping, map(id, mapping.values()), map(type, mapping.values())))
    except RuntimeError:
        return []
