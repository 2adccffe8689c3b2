"""Finds the eager tensors that are alive, in one look through all of Python's objects.

TensorFlow keeps no list of them, but Python's garbage collector has one of nearly all objects. The look is one step, a
tenth of a second or so in which no other Python code runs. Of each tensor only attributes are read: no operation runs,
nothing is read from a device, and no reference is kept.
"""

import _operator as operator
import gc
from itertools import compress, repeat
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

from .collector import Collector
from .objects import Step, called, identity, without_result
from .search import HoldingPaths, Search

if TYPE_CHECKING:
    from collections.abc import Collection
    from types import ModuleType

KIND = "tensors"

_NO_SIZE = {"string", "resource", "variant"}
"""Types whose tensors hold little but pointers, such as one to a variable's own memory."""

_TRIES = 5

BUSY = "busy"
"""The reason for no look that is given where the script's threads left no moment for it."""


class Look(NamedTuple):
    """The eager tensors that a look has found, in columns.

    ``shapes`` are texts such as ``(2, 3)``, ``sizes`` are bytes. ``hidden`` is the reason why there was no look, or why
    some objects were left out; ``events/inside.py`` has the reasons. ``frozen`` is the number of these.
    """

    items: "list[int]"  # identities
    shapes: "list[str]"
    dtypes: "list[str]"
    devices: "list[str]"
    sizes: "list[int]"
    hidden: Optional[str] = None
    frozen: Optional[int] = None

    @property
    def possible(self) -> bool:
        """Whether the look took place."""
        return self.hidden is None or self.frozen is not None


class Tensors:
    """Looks for tensors on request."""

    def __init__(self, module: "ModuleType", collector: Collector) -> None:
        """*module* is TensorFlow's module of variables, which has imported all that is needed here."""
        kind: Any = module.ops.EagerTensor
        self._class = kind
        self._device, self._packed = kind.__dict__["backing_device"].__get__, kind.__dict__["is_packed"].__get__
        self._enum, self._shape, self._count = kind._datatype_enum, kind._shape_tuple, kind._num_elements
        self._context: Any = module.context
        self._dtype: Any = module.dtypes.as_dtype
        self._collector = collector
        self._asynchronous = False
        # Objects that were frozen before there was a tensor; Python 3.12 itself freezes some.
        self._frozen = gc.get_freeze_count()

    def executor_made(self, enable_async: Any) -> None:
        """Note that the script makes an executor, which may run its operations asynchronously from now on."""
        self._asynchronous |= bool(enable_async)

    def look(self, handles: "Collection[int]") -> Look:
        """Find all tensors that are alive. *handles* are the identities of tensors that must be among them."""
        context = self._context._context
        if context is None:
            return Look([], [], [], [], [])
        if getattr(context, "_server_def", None) is not None:
            return nothing("remote")
        if self._asynchronous or getattr(context, "_default_is_async", False):
            return nothing("asynchronous")
        columns = self._columns()
        if columns is None:
            return nothing(BUSY)
        items, devices, packed, enums, counts, shapes = columns
        frozen = max(0, gc.get_freeze_count() - self._frozen)
        if handles and not frozen and not any(item in handles for item in items):
            return nothing("not_shown")
        look = Look([], [], [], [], [], "frozen" if frozen else None, frozen or None)
        for at, item in enumerate(items):
            kind, _, number = devices[at].rpartition("device:")[2].partition(":")
            dtype = self._dtype(enums[at])
            if not packed[at] and kind in ("CPU", "GPU") and dtype.name not in _NO_SIZE:
                look.items.append(item)
                look.shapes.append(shapes[at])
                look.dtypes.append(dtype.name)
                look.devices.append(f"{kind}:{number}")
                look.sizes.append(dtype.size * counts[at])
        return look

    def held(self, look: Look, seconds: float) -> HoldingPaths:
        """Return the paths by which Python holds the tensors of *look*: those found in about *seconds*."""
        wanted = dict(zip(look.items, look.shapes))
        return (
            Search(wanted, self._class, self._collector, seconds, self._shape).run() if wanted else HoldingPaths({}, {})
        )

    def _columns(self) -> "Optional[list[list[Any]]]":
        """Return identities, devices, whether packed, types, counts and shapes of all tensors; ``None`` if none fit.

        The device is read first. TensorFlow raises there if another thread is still making the tensor. A read of such a
        tensor's type would crash the process. So that tensor is left out in another try.
        """
        unfinished: set[int] = set()
        for _ in range(_TRIES):
            read: list[Any] = []
            try:
                self._read(read, unfinished)
            except ValueError:
                number = read[0]
                unfinished.add(read[len(read) - number])
                continue
            number = read[0]
            return [read[1 + column * number :][:number] for column in range(6)]
        return None

    def _read(self, read: "list[Any]", unfinished: "set[int]") -> None:
        """Append the number of tensors to *read*, then one column after the other."""
        step = Step()
        everything, all_tensors, tensors = step.box(), step.box(), step.box()
        are_tensors = map(operator.is_, map(type, everything), repeat(self._class))
        finished = map(operator.not_, map(unfinished.__contains__, map(identity, all_tensors)))
        step.read_into(
            read,
            # The one audit event is raised before an object is held.
            without_result(map(everything.extend, called(gc.get_objects))),
            without_result(map(all_tensors.extend, (compress(everything, are_tensors),))),
            without_result(map(tensors.extend, (compress(all_tensors, finished),))),
            called(tensors.__len__),
            map(identity, tensors),
            map(self._device, tensors),
            map(self._packed, tensors),
            map(self._enum, tensors),
            map(self._count, tensors),
            map(str, map(self._shape, tensors)),
        )


def as_list(shape: str) -> str:
    """Return the text of a tuple of numbers as that of a list."""
    return f"[{shape[1:-1].rstrip(',')}]"


def nothing(hidden: str) -> Look:
    """Return a look that has found nothing, for the reason *hidden*."""
    return Look([], [], [], [], [], hidden)
