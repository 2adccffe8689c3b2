"""Counts the variables: their sizes, their devices, and whether an optimizer made them.

The census keeps weak references only. It takes them when TensorFlow makes a variable. A size is computed from shape
and type: no operation runs, and nothing is read from a device. Other tensors are searched for among all of Python's
objects. The script stands still during that search, so it is done on demand, and from then on with each census if it
took little time. It also finds the paths by which Python holds these tensors.
"""

import sys
import time
from _weakref import ref
from typing import TYPE_CHECKING, Any, Optional

from .collector import MUCH, Collector
from .messenger import Messenger, encoded
from .objects import identity
from .tensors import BUSY, KIND, Look, Tensors, nothing

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

PACE_S = 30.0
SOON_S = 2.0
"""A census is repeated after this time if variables have been made since."""
PATHS_S = 0.4
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
_PRUNE = 256
_PATIENCE_S = 5.0
"""If there is no room for so long, a requested look for tensors gives way."""
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
    """A weak reference to a variable, and what is found out about the variable once.

    ``shape`` is a text such as ``[2, 3]``. ``size`` is bytes, ``None`` where the shape is not known. Two views of one
    variable have the same ``handle``. With ``folded``, a session may keep the initial value beside the variable.
    """

    __slots__ = ("device", "dtype", "folded", "graph", "handle", "kind", "name", "path", "reference", "shape", "size")

    def __init__(self, variable: Any, kind: str, path: Optional[str]) -> None:
        self.reference = ref(variable)
        self.kind = kind
        self.path = path
        self.graph: Optional[int] = None  # its identity, if it is a graph's
        self.handle: Optional[int] = None  # its identity, once the variable is known
        self.name = self.shape = self.dtype = self.device = ""
        self.size: Optional[int] = None
        self.folded = False


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
        self._waits_since: Optional[float] = None
        self._costly = False
        self._tensors_costly = True  # until a requested look has shown otherwise
        self._sent: Any = None

    def found(self, module: "ModuleType") -> None:
        """Take what is needed from *module*, TensorFlow's module of variables, which has been imported."""
        self._tensor = module.ops.EagerTensor
        self._tensors = Tensors(module, self._collector)

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
        """Take a census and send it, if one is due at *now* or requested, once there is room for its containers."""
        age = now - self._taken
        due = age >= (SOON_S if self._made != self._seen else PACE_S) and not self._costly
        if self._tensors is None or not (self._wanted or due):
            return
        if self._waits_since is None:
            self._waits_since = now
        room = self._collector.room(MUCH)
        if not room and not (self._tensors_wanted and now - self._waits_since > _PATIENCE_S):
            return
        asked, self._wanted = self._wanted, False
        looking, self._tensors_wanted = self._tensors_wanted or not self._tensors_costly, False
        self._taken, self._seen, self._waits_since = now, self._made, None
        began = time.thread_time()
        variables = self._variables()
        cost = time.thread_time() - began
        self._costly = cost > COST_S
        look: Optional[Look] = None
        if looking:
            handles = {one.handle or 0 for one in variables}
            look = self._tensors.look(handles, PATHS_S if asked else COST_S) if room else nothing(BUSY)
            cost = time.thread_time() - began
            self._tensors_costly = cost > COST_S
        fields = _counted(variables, look)
        if asked or fields != self._sent:
            self._sent = fields
            self._messenger.send_encoded("census", cost_us=str(int(cost * 1e6)), **fields)

    def _variables(self) -> "list[Entry]":
        """Return the variables whose size is known, each handle once."""
        sessions = [one() for one in self._sessions]
        graphs = {id(one._graph) for one in sessions if one is not None and not one._closed}
        known: dict[Optional[int], Entry] = {}
        for entry in list(self._entries):
            if self._collector.room() and self._has_memory(entry, graphs) and entry.size is not None:
                known.setdefault(entry.handle, entry)
        return list(known.values())

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
                entry.graph = id(getattr(handle, "graph", None))
                if entry.graph not in graphs:
                    return False
            if entry.handle is None:
                self._find(entry, variable, handle)
        return True

    def _find(self, entry: Entry, variable: Any, handle: Any) -> None:
        shape, dtype = variable.shape, variable.dtype.base_dtype
        count = shape.num_elements()
        entry.name = (entry.path or variable.name.partition(":")[0])[:_NAME]
        entry.shape = "[]" if count is None else str(shape.as_list())
        entry.dtype = dtype.name
        entry.device = handle.device.rpartition("device:")[2] or self._default
        entry.size = None if count is None else count * dtype.size
        folded = entry.graph is not None and entry.size is not None and OTHERS_FROM <= entry.size <= FOLDED
        entry.folded = folded and _is_constant(variable)
        entry.handle = identity(handle)


def _is_constant(variable: Any) -> bool:
    """Return whether the initial value of a graph's *variable* is the same each time."""
    initializer = getattr(variable, "_initializer_op", None)
    if initializer is None:
        return False
    inputs = initializer.inputs
    return len(inputs) > 1 and inputs[1].op.type in ("Fill", "Const")


def _counted(variables: "list[Entry]", look: Optional[Look]) -> "dict[str, str]":
    """Return the event's fields, encoded: bytes by device and kind, and the largest variables and tensors."""
    kinds: dict[str, dict[str, int]] = {}
    variables.sort(key=lambda one: -(one.size or 0))
    for one in variables:
        _add(kinds, one.device, one.kind, one.size or 0)
    sizes = [one.size or 0 for one in variables]
    if look is not None:
        for device, size in zip(look.devices, look.sizes):
            _add(kinds, device, KIND, size)
        sizes += look.sizes
    number = len(variables)
    largest = sorted(range(len(sizes)), key=lambda at: -sizes[at])[:SENT]
    first = sum(at < number for at in largest)  # of the variables, the first that is not among the largest
    tensors = look or nothing()
    rows = [_row(variables[at]) if at < number else _tensor_row(tensors, at - number) for at in largest]
    others = [_row(one) for one in variables[first:][:OTHERS_SENT] if (one.size or 0) >= OTHERS_FROM]
    initial = [_row(one) for one in variables if one.folded][:OTHERS_SENT]
    fields = {"kinds": encoded(kinds), "largest": _list(rows), "others": _list(others)}
    if initial:
        fields["initial"] = _list(initial)
    if look is not None:
        fields["tensors"] = str(len(look.items)) if look.possible else "null"
        fields["hidden"], fields["frozen"] = encoded(look.hidden), encoded(look.left_out)
        fields["alike"] = _list(_alike(look))
    return fields


def _add(kinds: "dict[str, dict[str, int]]", device: str, kind: str, size: int) -> None:
    of_device = kinds.setdefault(device, {})
    of_device[kind] = of_device.get(kind, 0) + size


def _tensor_row(look: Look, at: int) -> str:
    path = look.found.paths.get(look.items[at], "")
    return _encoded(path, KIND, look.shapes[at], look.dtypes[at], look.devices[at], look.sizes[at])


def _row(one: Entry) -> str:
    return _encoded(one.name, one.kind, one.shape, one.dtype, one.device, one.size or 0)


def _encoded(name: str, kind: str, shape: str, dtype: str, device: str, size: int) -> str:
    return f"[{encoded(name[:_NAME])}, {encoded(kind)}, {shape}, {encoded(dtype)}, {encoded(device)}, {size}]"


def _list(rows: "list[str]") -> str:
    return f"[{', '.join(rows)}]"


def _alike(look: Look) -> "list[str]":
    """Return the largest groups of tensors that are held alike, or, if no path to them is known, have one shape."""
    members: dict[str, int] = {}  # by what they have in common: the first of them
    counts: dict[int, int] = {}
    sizes: dict[int, int] = {}
    mixed: set[int] = set()
    for at, item in enumerate(look.items):
        holder = look.found.groups.get(item, "")
        shape, dtype = look.shapes[at], look.dtypes[at]
        first = members.setdefault(f"{look.devices[at]} {holder or dtype + shape}", at)
        counts[first] = counts.get(first, 0) + 1
        sizes[first] = sizes.get(first, 0) + look.sizes[at]
        if (look.shapes[first], look.dtypes[first]) != (shape, dtype):
            mixed.add(first)
    several = sorted((at for at, count in counts.items() if count > 1), key=lambda at: -sizes[at])
    rows = []
    for at in several[:GROUPS_SENT]:
        holder = encoded(look.found.groups.get(look.items[at], "")[:_NAME])
        shape = "null" if at in mixed else look.shapes[at]
        dtype, device = encoded(look.dtypes[at]), encoded(look.devices[at])
        rows.append(f"[{holder}, {counts[at]}, {shape}, {dtype}, {device}, {sizes[at]}]")
    return rows


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
