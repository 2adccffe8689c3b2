"""Keeps the list of variables: their sizes, their devices, and whether an optimizer made them.

There are weak references only. They are taken when TensorFlow makes a variable. A size is computed from shape and type:
no operation runs, and nothing is read from a device. It is found soon, since a variable that has gone has none.
"""

import _operator as operator
import sys
from _collections import deque  # type: ignore[import-not-found]
from _weakref import ref
from itertools import compress, repeat
from typing import TYPE_CHECKING, Any, Callable, Optional

from .collector import Collector, NoRoom
from .objects import Step, attribute, identity, without_result

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

OTHERS_FROM = 1024
"""Bytes. Variables beyond the largest are sent if they have at least this size, so that each chunk of memory gets its
name."""
NAME = 200  # characters

_LOCATED = 2000
"""The most variables, the largest, whose buffers are located in one census: each takes about a microsecond."""
_alive: Any = ref.__call__

_UNCOUNTED = 4096
"""The most new variables, and variables that have gone, that wait for the sampler: a forked child may have none."""
_FRAMES = 64
_KERAS = "keras.src.backend.tensorflow.core.", "_initialize"

VARIABLES, OPTIMIZER, METRICS = "variables", "optimizer", "metrics"
_MAKERS = (
    (".optimizers.", OPTIMIZER),
    (".optimizer_v2.", OPTIMIZER),
    ("tensorflow.python.training.slot_creator", OPTIMIZER),
    ("tensorflow.python.training.optimizer", OPTIMIZER),
    (".metrics.", METRICS),
    (".layers.", VARIABLES),
    (".models.", VARIABLES),
)
"""The innermost frame in such a module decides the kind. Without one, the variable is the model's or the script's."""


class Entry:
    """A weak reference to a variable, and what is found out about the variable once.

    ``item`` is the variable's identity, ``handle`` that of its handle. ``shape`` is a text such as ``[2, 3]``. ``size``
    is bytes, ``None`` where the shape is not known. ``address`` is that of its buffer when it was last located, 0 where
    that is not known.
    """

    __slots__ = (
        *("address", "device", "dtype", "graph", "handle", "item"),
        *("kind", "name", "path", "reference", "shape", "size"),
    )

    def __init__(self, variable: Any, kind: str, path: Optional[str], gone: "Callable[[Any], object]") -> None:
        """*gone* is called with the weak reference when the variable is deleted, in whichever thread that happens."""
        self.reference = ref(variable, gone)
        self.item = identity(variable)
        self.kind = kind
        self.path = path
        self.graph: Optional[int] = None  # its identity, if it is a graph's
        self.handle: Optional[int] = None  # once the variable is known
        self.name = self.shape = self.dtype = self.device = ""
        self.size: Optional[int] = None
        self.address = 0


class Variables:
    """The variables that are alive, and the bytes of those that have gone."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self._tensor: Any = None  # TensorFlow's class of eager tensors
        self._entries: dict[int, Entry] = {}  # by identity of the weak reference
        self._new: Any = deque(maxlen=_UNCOUNTED)  # of these, those that have not been looked at
        self._dead: Any = deque()  # weak references
        self._owners: dict[int, Entry] = {}  # by handle: the entry that counts, the newest of its variable
        self._sessions: list[Any] = []  # weak references
        self._default = "CPU:0"  # where sessions put variables for which the script chose no device
        self.gone: dict[str, list[int]] = {}
        """By device, of all variables that Python no longer holds: their number, bytes, and those of optimizers'."""
        self.made = 0
        """Grows with each variable that is made, and where variables get memory at once."""

    def found(self, module: "ModuleType") -> None:
        """Take what is needed from *module*, TensorFlow's module of variables, which has been imported."""
        self._tensor = module.ops.EagerTensor

    def add(self, variable: Any, *_: Any) -> None:
        """Add *variable*, which the frames of the callers are just making."""
        kind, path = _made_by(sys._getframe(1))
        entry = Entry(variable, kind, path if type(path) is str else None, self._dead.append)
        self._entries[identity(entry.reference)] = entry
        self._new.append(entry)
        self.made += 1
        if len(self._dead) > _UNCOUNTED:
            self._count_gone()

    def session_made(self, session: Any) -> None:
        """Note a new *session*, TF 1's way to run a graph: from now on the graph's variables have memory."""
        self._sessions = [*(one for one in self._sessions if one() is not None), ref(session)]
        self.made += 1  # variables that were made before now count as new

    def placed_on(self, device: str) -> None:
        """Note that sessions have a pool on *device*."""
        if device.startswith("GPU"):
            self._default = "GPU:0"

    def look(self) -> None:
        """Find the sizes of variables that are new, and count those that have gone since the last look."""
        for _ in range(len(self._new)):
            if not self._collector.room():
                return
            entry = self._new.popleft()
            self._has_memory(entry, set())
            if entry.handle is None and entry.graph is None and entry.reference() is not None:
                self._new.append(entry)  # it is still being made
        self._count_gone()

    def _count_gone(self) -> None:
        for _ in range(len(self._dead)):
            entry = self._entries.pop(identity(self._dead.popleft()), None)
            handle = None if entry is None else entry.handle
            if entry is None or handle is None or self._owners.get(handle) is not entry:
                continue
            del self._owners[handle]
            if entry.graph is None:
                of_device = self.gone.setdefault(entry.device, [0, 0, 0])
                of_device[0] += 1
                of_device[1] += entry.size or 0
                of_device[2] += entry.size or 0 if entry.kind == OPTIMIZER else 0

    def alive(self) -> "list[Entry]":
        """Return the variables whose size is known, each handle once."""
        sessions = [one() for one in self._sessions]
        graphs = {id(one._graph) for one in sessions if one is not None and not one._closed}
        known: dict[Optional[int], Entry] = {}
        for entry in list(self._entries.values()):
            if self._collector.room() and self._has_memory(entry, graphs) and entry.size is not None:
                known.setdefault(entry.handle, entry)
        return list(known.values())

    def locate(self, entries: "list[Entry]", address: Any) -> None:
        """Find where the buffers of the first of these variables lie, with the C function *address*.

        Variables of a graph have no handle that shows it.
        """
        chosen = [entry for entry in entries if entry.graph is None][:_LOCATED]
        try:
            step = Step(self._collector)
            variables, handles = step.box(), step.box()
            there = compress(variables, map(operator.is_not, variables, repeat(None)))
            of_each = map(dict.get, attribute("__dict__", there), repeat("_handle"))
            read = step.read(
                without_result(map(variables.extend, (map(_alive, [entry.reference for entry in chosen]),))),
                without_result(map(handles.extend, (of_each,))),
                compress(map(identity, handles), self._are_eager(handles)),
                map(address, compress(handles, self._are_eager(handles))),
            )
        except NoRoom:
            return
        found = dict(zip(read[: len(read) // 2], read[len(read) // 2 :]))
        for entry in chosen:
            entry.address = found.get(entry.handle or 0, 0)

    def _are_eager(self, handles: "list[Any]") -> "Iterator[bool]":
        return map(operator.is_, map(type, handles), repeat(self._tensor))

    def _has_memory(self, entry: Entry, graphs: "set[int]") -> bool:
        """Return whether a variable has memory, and find out about it the first time.

        A variable of a graph has memory while an open session has that graph.
        """
        variable = entry.reference()
        if variable is None:
            return False
        if entry.handle is None or entry.graph is not None:
            handle = getattr(variable, "_handle", None)
            if not isinstance(handle, self._tensor):
                # A variable that is still being made has neither handle, and no memory yet.
                handle = getattr(variable, "_variable", None) if handle is None else handle
                if handle is None:
                    return False
                entry.graph = id(getattr(handle, "graph", None))
                if entry.graph not in graphs:
                    return False
            if entry.handle is None:
                self._find(entry, variable, handle)
        return True

    def _find(self, entry: Entry, variable: Any, handle: Any) -> None:
        shape, dtype = variable.shape, variable.dtype.base_dtype
        count = shape.num_elements()
        entry.name = (entry.path or variable.name.partition(":")[0])[:NAME]
        entry.shape = "[]" if count is None else str(shape.as_list())
        entry.dtype = dtype.name
        entry.device = handle.device.rpartition("device:")[2] or self._default
        entry.size = None if count is None else count * dtype.size
        entry.handle = identity(handle)
        self._owners[entry.handle] = entry


def _made_by(frame: Any) -> "tuple[str, Optional[str]]":
    """Return the kind of the variable that *frame* makes, and Keras's own path of it.

    The name that Keras gives to TensorFlow lacks the layers.
    """
    path = None
    for _ in range(_FRAMES):
        if frame is None:
            break
        module = f"{frame.f_globals.get('__name__')}."
        if (module, frame.f_code.co_name) == _KERAS:
            path = path or getattr(frame.f_locals.get("self"), "_path", None)
        for part, kind in _MAKERS:
            if part in module:
                return kind, path
        frame = frame.f_back
    return VARIABLES, path
