"""Finds the eager tensors that are alive, in one look through all of Python's objects.

TensorFlow keeps no list of them, but Python's garbage collector has one of nearly all objects. The look is one step, a
tenth of a second or so in which no other Python code runs. Of each tensor only attributes are read: no operation runs,
nothing is read from a device, and no reference is kept.
"""

import _operator as operator
import gc
import sys
import time
from _weakref import ref
from itertools import chain, compress, islice, repeat
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

from .collector import MUCH, ROOM, Collector, NoRoom
from .objects import Step, called, identity, text_of, without_result
from .paths import Found
from .search import Search

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from types import ModuleType

KIND = "tensors"

_NO_SIZE = {"string", "resource", "variant"}
"""Types whose tensors hold little but pointers, such as one to a variable's own memory."""

_PATIENCE_S = 1.0
_PASSES, _REFERENCES = 4, 128
"""The most looks through all objects for tensors to which no path was found, and the most of these in one look."""

_LOCATED = 10_000  # tensors of one look, at most: each takes about a microsecond

BUSY = "busy"
"""The reason for no look that is given where the script's threads left no moment for it."""


class Look(NamedTuple):
    """The eager tensors that a look has found, in columns, and by which paths Python holds them.

    ``shapes`` are texts such as ``[2, 3]``, ``sizes`` are bytes, ``addresses`` those of the buffers, 0 if not known.
    ``hidden`` is the reason why there was no look, or why some objects were left out; ``events/census.py`` has the
    reasons. ``left_out`` is the number of these.
    """

    items: "list[int]"  # identities
    shapes: "list[str]"
    dtypes: "list[str]"
    devices: "list[str]"
    sizes: "list[int]"
    addresses: "list[int]"
    found: Found
    hidden: Optional[str] = None
    left_out: Optional[int] = None
    tapes: Optional[int] = None  # gradient tapes that are recording, or persistent
    tapes_in: str = ""  # the path by which Python holds most of them

    @property
    def possible(self) -> bool:
        """Whether the look took place."""
        return self.hidden is None or self.left_out is not None


class Tensors:
    """Looks for tensors on request."""

    def __init__(self, module: "ModuleType", collector: Collector) -> None:
        """*module* is TensorFlow's module of variables, which has imported all that is needed here."""
        kind: Any = module.ops.EagerTensor
        self._class = kind
        self._device, self._packed = kind.__dict__["backing_device"].__get__, kind.__dict__["is_packed"].__get__
        self._enum, self._shape = kind._datatype_enum, kind._shape_tuple
        self._context: Any = module.context
        self._dtype: Any = module.dtypes.as_dtype
        self._owner: Any = module.trackable.Trackable
        self._collector = collector
        # Objects that were frozen before there was a tensor; Python 3.12 itself freezes some.
        self._frozen = gc.get_freeze_count()

    def look(
        self,
        handles: "Collection[int]",
        variables: "dict[int, type]",
        seconds: float,
        until: Optional[float],
        raised: bool,
        address: Any,
    ) -> Look:
        """Find all tensors that are alive, and the paths by which Python holds them, those found in about *seconds*.

        *handles* are the identities of tensors that must be among them. The paths of *variables*, which are classes by
        identity, are found too. *until* is when the look must be over, ``None`` if the script goes on meanwhile.
        *raised* is whether an exception has ended it. *address* is the C function that returns where a tensor's buffer
        lies, ``None`` while there is none.
        """
        context = self._context._context
        if context is None:
            return nothing()
        if getattr(context, "_server_def", None) is not None:
            return nothing("remote")
        if getattr(context, "_default_is_async", False):
            return nothing("asynchronous")
        columns = self._columns(until or time.monotonic() + _PATIENCE_S, address)
        if columns is None:
            return nothing(BUSY)
        items, devices, packed, enums, addresses, tapes = columns
        recording = [tape for flag, tape in zip(tapes, tapes[len(tapes) // 2 :]) if flag is True]
        frozen = max(0, gc.get_freeze_count() - self._frozen)
        if handles and not frozen and not any(item in handles for item in items):
            return nothing("not_shown")
        names = {enum: self._dtype(enum) for enum in set(enums)}
        wanted = [at for at in range(len(items)) if not packed[at] and names[enums[at]].name not in _NO_SIZE]
        sought = {items[at] for at in wanted}
        sought_too = {**variables, **dict.fromkeys(recording, _class_of_tapes())}
        search = Search(
            sought, self._class, sought_too, self._owner, self._collector, seconds, until, self._shape, raised
        )
        found = search.run()
        missing = [items[at] for at in wanted if items[at] not in found.shapes]
        left_out = frozen + self._find_shapes(missing, found.shapes, until)
        unseen = "audited" if search.heard else "late" if search.cut_short else None
        hidden = "frozen" if frozen else BUSY if left_out else unseen
        held = [found.groups.get(tape, found.paths.get(tape, "")) for tape in recording]
        most = next((path for path in held if held.count(path) * 2 > len(held)), "")
        look = Look([], [], [], [], [], [], found, hidden, left_out if hidden else None, len(recording), most)
        for at in wanted:
            kind, _, number = devices[at].rpartition("device:")[2].partition(":")
            extents = found.shapes.get(items[at])
            if extents is not None and kind in ("CPU", "GPU"):
                dtype = names[enums[at]]
                look.items.append(items[at])
                look.shapes.append(extents)
                look.dtypes.append(dtype.name)
                look.devices.append(f"{kind}:{number}")
                look.sizes.append(_size(extents, dtype.size))
                look.addresses.append(addresses[at])
        return look

    def global_arrays(self) -> "list[str]":
        """Return the large NumPy arrays that are global variables of the script, as they are sent."""
        return Search(set(), self._class, {}, self._owner, self._collector, 1.0, None, self._shape).arrays_of_globals()

    def _columns(self, until: float, address: Any) -> "Optional[list[list[Any]]]":
        """Return identity, device, whether packed, type and address of all tensors, each a column.

        The last column has whether each tape records, and then the identities of the tapes.

        ``None`` if there is no room for that *until* then.

        The device is read first. TensorFlow raises there if another thread is still making the tensor. A read of such a
        tensor's type would crash the process. So that tensor is left out in another try.
        """
        unfinished: set[int] = set()
        while self._collector.wait(MUCH + ROOM, until):
            read: list[Any] = []
            try:
                self._read(read, unfinished, address)
            except NoRoom:
                continue
            except ValueError:
                number = read[0]
                unfinished.add(read[len(read) - number])
                continue
            number = read[0]
            return [*(read[1 + column * number :][:number] for column in range(5)), read[1 + 5 * number :]]
        return None

    def _read(self, read: "list[Any]", unfinished: "set[int]", address: Any) -> None:
        """Append the number of tensors to *read*, then one column after the other."""
        step = Step(self._collector)
        all_tensors, tensors, tapes = step.box(), step.box(), step.box()
        finished = map(operator.not_, map(unfinished.__contains__, map(identity, all_tensors)))
        step.read_into(
            read,
            self._filled(step, all_tensors, tapes),
            without_result(map(tensors.extend, (compress(all_tensors, finished),))),
            called(tensors.__len__),
            map(identity, tensors),
            map(self._device, tensors),
            map(self._packed, tensors),
            map(self._enum, tensors),
            *_addresses(tensors, address),
            map(operator.or_, self._flags(tapes, "_recording"), self._flags(tapes, "_persistent")),
            map(identity, tapes),
        )

    def _flags(self, tapes: "list[Any]", name: str) -> "Iterator[bool]":
        """Yield an attribute of the *tapes* that is true or false."""
        return map(operator.truth, map(dict.get, map(object.__getattribute__, tapes, repeat("__dict__")), repeat(name)))

    def _filled(self, step: Step, box: "list[Any]", tapes: "Optional[list[Any]]" = None) -> "Iterator[Any]":
        """Fill the *box* with all tensors, and *tapes* with all gradient tapes, and yield nothing."""
        everything = step.box()
        are_tensors = map(operator.is_, map(type, everything), repeat(self._class))
        # The one audit event is raised before an object is held.
        filled = map(everything.extend, called(gc.get_objects))
        chosen = [map(box.extend, (compress(everything, are_tensors),))]
        if tapes is not None:
            are_tapes = map(operator.is_, map(type, everything), repeat(_class_of_tapes()))
            chosen.append(map(tapes.extend, (compress(everything, are_tapes),)))
        return without_result(chain(filled, *chosen, called(everything.clear)))

    def _find_shapes(self, items: "list[int]", shapes: "dict[int, str]", until: Optional[float]) -> int:
        """Find the *shapes* of tensors to which no path was found, and return of how many there was no room for that.

        TensorFlow lets other threads run while it returns a shape. So not all tensors may be held then, only one.
        """
        most = _REFERENCES if self._collector.needed else len(items)
        for _ in range(_PASSES):
            chosen = set(items[:most])
            if not chosen or not self._collector.wait(2 * MUCH, until or time.monotonic() + _PATIENCE_S):
                break
            del items[:most]
            step = Step(self._collector)
            tensors = step.box()
            are_chosen = map(chosen.__contains__, map(identity, tensors))
            try:
                references = step.read(self._filled(step, tensors), map(ref, compress(tensors, are_chosen)))
            except NoRoom:
                return len(items) + len(chosen)
            for reference in references:
                tensor = reference()
                if tensor is not None:
                    shapes[identity(tensor)] = text_of(self._shape(tensor))
                tensor = None
        return len(items)


def _addresses(tensors: "list[Any]", address: Any) -> "list[Iterator[Any]]":
    """Return the parts that yield the *address* of each of the *tensors*; false where it is not read."""
    located = 0 if address is None else _LOCATED
    rest = map(operator.is_, islice(tensors, located, None), repeat(None))
    return [map(address, islice(tensors, located)), rest] if located else [rest]


def _class_of_tapes() -> Any:
    module: Any = sys.modules.get("tensorflow.python.eager.backprop")
    return None if module is None else vars(module).get("GradientTape")


def _size(extents: str, size: int) -> int:
    """Return the bytes of a tensor whose elements have that *size*."""
    for extent in extents[1:-1].split(", ") if len(extents) > 2 else ():
        size *= int(extent)
    return size


def nothing(hidden: Optional[str] = None) -> Look:
    """Return a look that has found nothing, for the reason *hidden* if there is one."""
    return Look([], [], [], [], [], [], Found({}, {}, {}, {}, []), hidden)
