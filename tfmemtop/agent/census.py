"""Counts the variables: their sizes, their devices, and whether an optimizer made them.

The census keeps weak references only. It takes them when TensorFlow makes a variable. A size is computed from shape
and type: no operation runs, and nothing is read from a device. Other tensors are searched for among all of Python's
objects. The script stands still during that search, so it is done on demand, and from then on with each census if it
took little time. It also finds the paths by which Python holds these tensors.
"""

import sys
import time
from _weakref import ref
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

from . import tensors
from .gc_guard import Collector
from .messenger import Messenger
from .paths import HoldingPath
from .tensors import Look, Tensor, Tensors

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

PACE_S = 30.0
SOON_S = 2.0
"""A census is repeated after this time if variables have been made since."""
PATHS_S = 0.2
"""In a look for tensors that was requested, the most of the agent's thread time that the search for their paths takes.
The script's threads take their turns meanwhile."""
COST_S = 0.005
"""If a census takes longer than this, later ones are taken on demand only. The same holds for the look for tensors."""
SENT = 20
OTHERS_SENT = 2000
OTHERS_FROM = 1024
"""Bytes. Variables beyond the largest are sent if they have at least this size, so that each chunk of memory gets its
name."""
GROUPS_SENT = 10
FOLDED = 10 << 20
"""Bytes. TensorFlow computes initial values up to this size, such as zeros, when it prepares a session's graph, and
keeps them as constants until the session ends."""

_NAME = 200  # characters
_NAMELESS = HoldingPath("", "")
_PRUNE = 256
_FRAMES = 64
_KERAS = "keras.src.backend.tensorflow.core", "_initialize"
_KERAS_FRAMES = 12

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
    """A weak reference to a variable, and what was found out about the variable once."""

    __slots__ = ("found", "graph", "kind", "path", "reference")

    def __init__(self, variable: Any, kind: str, path: Optional[str]) -> None:
        self.reference = ref(variable)
        self.kind = kind
        self.path = path
        self.found: Optional[Found] = None
        self.graph: Optional[int] = None  # its identity, if it is a graph's


class Found(NamedTuple):
    """What is known of a variable; ``size`` is bytes, ``None`` where the shape is not known.

    Two views of one variable have the same ``handle``. With ``folded``, a session may keep the initial value beside
    the variable.
    """

    name: str
    shape: "list[int]"
    dtype: str
    device: str
    size: Optional[int]
    handle: int
    folded: bool


class Census:
    """Keeps the list of variables, and counts them when a census is due or requested."""

    def __init__(self, messenger: Messenger, collector: Collector) -> None:
        self._messenger = messenger
        self._collector = collector
        self._entries: list[Entry] = []
        self._tensor: Any = None  # TensorFlow's class of eager tensors
        self._tensors: Optional[Tensors] = None
        self._sessions: list[Any] = []  # weak references
        self._default = "CPU:0"  # where sessions put variables for which the script chose no device
        self._made = self._seen = 0
        self._prune_at = _PRUNE
        self._wanted = self._tensors_wanted = False
        self._taken = float("-inf")
        self._costly = False
        self._tensors_costly = True  # until a requested look has shown otherwise
        self._sent: Any = None

    def found(self, module: "ModuleType") -> None:
        """Take what is needed from *module*, TensorFlow's module of variables, which has been imported."""
        self._tensor = module.ops.EagerTensor
        self._tensors = Tensors(module)

    def executor_made(self, enable_async: Any) -> None:
        """Note that an executor of operations is being made, asynchronous or not."""
        if self._tensors is not None:
            self._tensors.executor_made(enable_async)

    def add(self, variable: Any) -> None:
        """Add *variable*, which the frames of the callers are just making."""
        frame = sys._getframe(1)
        self._entries.append(Entry(variable, _kind(frame), _keras_path(frame)))
        self._made += 1
        if len(self._entries) >= self._prune_at:
            self._entries = [entry for entry in self._entries if entry.reference() is not None]
            self._prune_at = max(_PRUNE, 2 * len(self._entries))

    def found_earlier(self, found: "Sequence[tuple[Any, str, Optional[str]]]") -> None:
        """Add variables made before the agent was loaded: each as the variable, its kind and Keras's path of it."""
        known = {id(entry.reference()) for entry in self._entries}
        self._entries[:0] = [Entry(*each) for each in found if id(each[0]) not in known]
        self._prune_at = max(_PRUNE, 2 * len(self._entries))
        self._made += 1

    def begin_again(self) -> None:
        """Make the next census due at once and send it in any case: a new engine has none yet."""
        self._sent, self._taken = None, float("-inf")

    def session_made(self, session: Any) -> None:
        """Note a new *session*, TF 1's way to run a graph: from now on the graph's variables have memory."""
        self._sessions = [*(one for one in self._sessions if one() is not None), ref(session)]
        self._seen = -1  # a census is due: variables that were made before now count as new

    def placed_on(self, device: str) -> None:
        """Note that sessions have a pool on *device*."""
        if device.startswith("GPU"):
            self._default = "GPU:0"

    def want(self, tensors: bool) -> None:
        """Request a census now, of *tensors* too or of variables only."""
        self._wanted = True
        self._tensors_wanted |= tensors

    def tell(self, now: float) -> None:
        """Take a census and send it, if one is due at *now* or requested."""
        age = now - self._taken
        due = age >= (SOON_S if self._made != self._seen else PACE_S) and not self._costly
        if self._tensors is None or not (self._wanted or due):
            return
        asked, self._wanted = self._wanted, False
        looking, self._tensors_wanted = self._tensors_wanted or not self._tensors_costly, False
        self._taken, self._seen = now, self._made
        self._collector.off(much=True)
        began = time.thread_time()
        variables = self._variables()
        cost = time.thread_time() - began
        self._costly = cost > COST_S
        look = self._tensors.look(variables) if looking else None
        paths = self._tensors.held(look.tensors or [], PATHS_S if asked else COST_S) if look else {}
        fields = _counted(list(variables.values()), look, paths)
        if looking:
            cost = time.thread_time() - began
            self._tensors_costly = cost > COST_S
        if asked or fields != self._sent:
            self._sent = fields
            self._messenger.send("census", cost_us=int(cost * 1e6), **fields)

    def _variables(self) -> "dict[int, tuple[str, Found]]":
        """Return the variables whose size is known, with their kinds, by handle."""
        known: dict[int, tuple[str, Found]] = {}
        sessions = [one() for one in self._sessions]
        graphs = {id(one._graph) for one in sessions if one is not None and not one._closed}
        for entry in list(self._entries):
            found = self._look(entry, graphs)
            if found is not None and found.size is not None:
                known.setdefault(found.handle, (entry.kind, found))
        return known

    def _look(self, entry: Entry, graphs: "set[int]") -> Optional[Found]:
        """Return what is known of a variable; ``None`` if it has no memory.

        A variable of a graph has memory while an open session has that graph.
        """
        variable = entry.reference()
        if variable is None:
            return None
        if entry.found is None or entry.graph is not None:
            handle = getattr(variable, "_handle", None)
            if not isinstance(handle, self._tensor):
                # A variable that is still being made has neither handle, and no memory yet.
                handle = getattr(variable, "_variable", None) if handle is None else handle
                entry.graph = id(getattr(handle, "graph", None))
                if entry.graph not in graphs:
                    return None
            if entry.found is None:
                entry.found = self._found(entry, variable, handle)
        return entry.found

    def _found(self, entry: Entry, variable: Any, handle: Any) -> Found:
        shape, dtype = variable.shape, variable.dtype.base_dtype
        count = shape.num_elements()
        size = None if count is None else count * dtype.size
        folded = entry.graph is not None and size is not None and OTHERS_FROM <= size <= FOLDED
        return Found(
            (entry.path or variable.name.partition(":")[0])[:_NAME],
            [] if count is None else shape.as_list(),
            dtype.name,
            handle.device.rpartition("device:")[2] or self._default,
            size,
            id(handle),
            folded and _is_constant(variable),
        )


def _is_constant(variable: Any) -> bool:
    """Return whether the initial value of a graph's *variable* is the same each time."""
    initializer = getattr(variable, "_initializer_op", None)
    if initializer is None:
        return False
    inputs = initializer.inputs
    return len(inputs) > 1 and inputs[1].op.type in ("Fill", "Const")


def _counted(
    variables: "list[tuple[str, Found]]", look: Optional[Look], paths: "dict[int, HoldingPath]"
) -> "dict[str, Any]":
    """Return the event's fields: bytes by device and kind, and the largest variables and tensors."""
    kinds: dict[str, dict[str, int]] = {}
    largest: list[tuple[str, Any]] = list(variables)
    largest += [(tensors.KIND, tensor) for tensor in look.tensors or ()] if look else []
    for kind, found in largest:
        of_device = kinds.setdefault(found.device, {})
        of_device[kind] = of_device.get(kind, 0) + found.size
    largest.sort(key=lambda one: -one[1].size)
    others = [(kind, found) for kind, found in largest[SENT:] if kind != tensors.KIND and found.size >= OTHERS_FROM]
    initial = [(kind, found) for kind, found in largest if kind != tensors.KIND and found.folded]
    del largest[SENT:]
    rows = [
        [_name(found, paths), kind, list(found.shape), found.dtype, found.device, found.size] for kind, found in largest
    ]
    fields: dict[str, Any] = {"kinds": kinds, "largest": rows, "others": [_row(*one) for one in others[:OTHERS_SENT]]}
    if initial:
        fields["initial"] = [_row(*one) for one in initial[:OTHERS_SENT]]
    if look is not None:
        found = look.tensors
        fields.update(
            tensors=None if found is None else len(found),
            hidden=look.hidden,
            frozen=look.frozen,
            alike=_alike(found or [], paths),
        )
    return fields


def _row(kind: str, found: Found) -> "list[Any]":
    return [found.name, kind, found.shape, found.dtype, found.device, found.size]


def _name(found: Any, paths: "dict[int, HoldingPath]") -> str:
    name: str = paths.get(found.identity, _NAMELESS).path if isinstance(found, Tensor) else found.name
    return name[:_NAME]


def _alike(found: "list[Tensor]", paths: "dict[int, HoldingPath]") -> "list[list[Any]]":
    """Return the largest groups of tensors that are held alike, or, if no path to them is known, have one shape."""
    groups: dict[Any, list[Any]] = {}  # rows [holder, count, shape, type, device, bytes]
    for tensor in found:
        holder = paths.get(tensor.identity, _NAMELESS).group
        shape, dtype = list(tensor.shape), tensor.dtype
        key: Any = (holder, tensor.device) if holder else (tensor.device, dtype, tensor.shape)
        row = groups.setdefault(key, [holder[:_NAME], 0, shape, dtype, tensor.device, 0])
        row[1] += 1
        row[5] += tensor.size
        if (row[2], row[3]) != (shape, dtype):
            row[2] = None
    several = [row for row in groups.values() if row[1] > 1]
    return sorted(several, key=lambda row: -row[5])[:GROUPS_SENT]


def _keras_path(frame: Any) -> Optional[str]:
    """Return Keras's own path of the variable that it makes: the name that it gives to TensorFlow lacks the layers."""
    module, function = _KERAS
    for _ in range(_KERAS_FRAMES):
        if frame is None:
            break
        if frame.f_code.co_name == function and frame.f_globals.get("__name__") == module:
            path = getattr(frame.f_locals.get("self"), "_path", None)
            return path if isinstance(path, str) else None
        frame = frame.f_back
    return None


def _kind(frame: Any) -> str:
    for _ in range(_FRAMES):
        if frame is None:
            break
        module = f"{frame.f_globals.get('__name__')}."
        for part, kind in _MAKERS:
            if part in module:
                return kind
        frame = frame.f_back
    return VARIABLES
