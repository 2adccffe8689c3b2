"""Counts the variables and the live tensors, and finds out what holds them.

Tensors are searched for among all of Python's objects. The script stands still during that search, so it is done on
demand, and from then on with each census if it took little time. It also finds the paths by which Python holds tensors
and variables.
"""

import binascii
import time
from _struct import pack
from typing import TYPE_CHECKING, Any, Optional

from .collector import MUCH, Collector
from .datasets import Datasets
from .messenger import Messenger, encoded
from .native import address_reader
from .paths import Found
from .tensors import BUSY, KIND, Look, Tensors, nothing
from .variables import NAME, OTHERS_FROM, Entry, Variables

if TYPE_CHECKING:
    from types import ModuleType

PACE_S = 30.0
SOON_S = 2.0
"""A census is repeated after this time if variables have been made since."""
AT_ONCE_S = 0.2
"""The same for data sets. A buffer of one fills within a second, and then the script may wait for room with Python's
lock held, so that nothing can be counted."""
PATHS_S = 0.4
"""In a look for tensors that was requested, the most of the agent's thread time that the search for their paths takes.
The script's threads take their turns meanwhile."""
COST_S = 0.005
"""If a census takes longer than this, later ones are taken on demand only. The same holds for the look for tensors."""
SENT = 20
OTHERS_SENT = 2000
GROUPS_SENT = 20
ADDRESSES_SENT = 1000
"""The most addresses of one group; of all groups together it is twice as many."""

USUAL, WAITING, END, OPENED, CLOSED = "usual", "waiting", "end", "opened", "closed"

_ROOM = 60_000  # bytes of all rows: the engine takes packets of up to 64 KiB
_PATIENCE_S = 5.0
"""If there is no room for so long, a requested look for tensors gives way."""


class Census:
    """Counts the variables when a census is due or requested."""

    def __init__(self, messenger: Messenger, collector: Collector) -> None:
        self.variables = Variables(collector)
        self.datasets = Datasets()
        self._messenger = messenger
        self._collector = collector
        self._tensors: Optional[Tensors] = None
        self._asynchronous = False
        self._address: Any = None  # the C function that returns where a tensor's buffer lies
        self._seen = 0, 0  # variables and data sets that had been made
        self._wanted = self._tensors_wanted = False
        self._moment = USUAL
        self._window = 0
        self._taken = float("-inf")
        self._waits_since: Optional[float] = None
        self._costly = False
        self._tensors_costly = True  # until a requested look has shown otherwise
        self._sent: Any = None

    def found(self, module: "ModuleType") -> None:
        """Take what is needed from *module*, TensorFlow's module of variables, which has been imported."""
        self.variables.found(module)
        self._tensors = Tensors(module, self._collector)

    def executor_made(self, enable_async: Any, *_: Any, **__: Any) -> None:
        """Note that an executor is made, which may run the script's operations asynchronously from now on."""
        self._asynchronous |= bool(enable_async)

    def may_locate(self, path: str, checksum: int) -> None:
        """Find where buffers lie, with the library at *path*."""
        self._address = address_reader(path, checksum)

    def want(self, tensors: bool, moment: str = USUAL) -> None:
        """Request a census now, of *tensors* too or of variables only."""
        self._wanted = True
        self._tensors_wanted |= tensors
        self._moment = moment

    def want_for(self, window: int, opened: bool) -> None:
        """Request a census now, as the window of allocations with this number was *opened*, or closed."""
        self._wanted, self._window = True, window
        if self._moment == USUAL:
            self._moment = OPENED if opened else CLOSED

    def tell(self, now: float) -> None:
        """Take a census and send it, if one is due at *now* or requested, once there is room for its containers."""
        if self._tensors is None:
            return
        self.variables.look()
        age = now - self._taken
        made = self.variables.made, self.datasets.made
        pace = AT_ONCE_S if made[1] != self._seen[1] else SOON_S if made != self._seen else PACE_S
        due = age >= pace and not self._costly
        if not (self._wanted or due):
            return
        if self._waits_since is None:
            self._waits_since = now
        room = self._collector.room(MUCH)
        if not room and not (self._tensors_wanted and now - self._waits_since > _PATIENCE_S):
            return
        asked, self._wanted = self._wanted, False
        # A look takes longer than many a step. So it would disturb the window that was just opened.
        looking = self._tensors_wanted or not (self._tensors_costly or self._moment == OPENED)
        self._tensors_wanted = False
        moment, self._moment = self._moment, USUAL
        self._taken, self._seen, self._waits_since = now, made, None
        began = time.thread_time()
        variables = self._alive()
        cost = time.thread_time() - began
        self._costly = cost > COST_S
        look: Optional[Look] = None
        if looking:
            seconds = PATHS_S if asked else COST_S
            look = self._looked(self._tensors, variables, seconds) if room else nothing(BUSY)
            cost = time.thread_time() - began
            self._tensors_costly = cost > COST_S
        self._collector.regain()  # the script's threads have run amid a look
        self._send(self._fields(self._tensors, variables, look, moment), cost, asked)

    def tell_last(self, seconds: float, until: float, raised: bool) -> None:
        """Take a census with a look for tensors as the script ends, and send it, if there is time for it *until* then.

        This runs in the script's thread, of whose time it takes so many *seconds* at most. *raised* is whether an
        exception has ended the script.
        """
        if self._tensors is None or time.monotonic() >= until:
            return
        began = time.thread_time()
        self.variables.look()
        variables = self._alive()
        look: Optional[Look] = self._looked(self._tensors, variables, seconds, until, raised)
        if look is not None and not look.possible:
            look = None  # the one before says more
        self._send(self._fields(self._tensors, variables, look, END), time.thread_time() - began, True)

    def _alive(self) -> "list[Entry]":
        """Return the variables that are alive, the largest first."""
        variables = self.variables.alive()
        variables.sort(key=lambda one: -(one.size or 0))
        return variables

    def _looked(
        self,
        tensors: Tensors,
        variables: "list[Entry]",
        seconds: float,
        until: Optional[float] = None,
        raised: bool = False,
    ) -> Look:
        if self._asynchronous:
            return nothing("asynchronous")
        handles = {one.handle or 0 for one in variables}
        kinds: dict[int, type] = {}
        for one in variables:
            kind: type = type(one.reference())
            if kind is not type(None):
                kinds[one.item] = kind
        return tensors.look(handles, kinds, seconds, until, raised, self._address)

    def _fields(
        self, tensors: Tensors, variables: "list[Entry]", look: Optional[Look], moment: str
    ) -> "dict[str, str]":
        """Return the event's fields, encoded."""
        if self._address is not None:
            self.variables.locate(variables, self._address)
        rows = look.found.arrays if look is not None and look.possible else tensors.global_arrays()
        gone = [f"[{encoded(device)}, {', '.join(map(str, told))}]" for device, told in self.variables.gone.items()]
        fields = {"moment": encoded(moment), "window": str(self._window), "gone": _list(gone)}
        self._window = 0
        fields["buffers"], fields["arrays"] = _list(self.datasets.rows()), _list(rows)
        if look is not None:
            fields["tapes"], fields["tapes_in"] = encoded(look.tapes), encoded(look.tapes_in[:NAME])
        return _counted(variables, look, fields)

    def _send(self, fields: "dict[str, str]", cost: float, surely: bool) -> None:
        if surely or fields != self._sent:
            self._sent = fields
            self._messenger.send_encoded("census", cost_us=str(int(cost * 1e6)), **fields)


class _Columns:
    """Variables, the largest first, and then the tensors of a look.

    They are in columns, because one container for each would make the collector due.
    """

    def __init__(self, variables: "list[Entry]", look: Look) -> None:
        self.items = [one.item for one in variables] + look.items
        self.names = [one.name for one in variables] + [look.found.paths.get(item, "") for item in look.items]
        self.kinds = [one.kind for one in variables] + [KIND] * len(look.items)
        self.shapes = [one.shape for one in variables] + look.shapes
        self.dtypes = [one.dtype for one in variables] + look.dtypes
        self.devices = [one.device for one in variables] + look.devices
        self.sizes = [one.size or 0 for one in variables] + look.sizes
        self.addresses = [one.address for one in variables] + look.addresses

    def row(self, at: int) -> str:
        """Return one of them as it is sent."""
        fields = f"{encoded(self.names[at][:NAME])}, {encoded(self.kinds[at])}, {self.shapes[at]}"
        address = f", {self.addresses[at]}" if self.addresses[at] else ""
        return f"[{fields}, {encoded(self.dtypes[at])}, {encoded(self.devices[at])}, {self.sizes[at]}{address}]"


def _counted(variables: "list[Entry]", look: Optional[Look], more: "dict[str, str]") -> "dict[str, str]":
    """Return the event's fields: bytes by device and kind, the largest variables and tensors, and *more*."""
    found = _Columns(variables, look or nothing())
    kinds: dict[str, dict[str, int]] = {}
    for device, kind, size in zip(found.devices, found.kinds, found.sizes):
        of_device = kinds.setdefault(device, {})
        of_device[kind] = of_device.get(kind, 0) + size
    number = len(variables)
    largest = sorted(range(len(found.sizes)), key=lambda at: -found.sizes[at])[:SENT]
    first = sum(at < number for at in largest)  # of the variables, the first that is not among the largest
    further = [*range(first, number), *_single(found, look, set(largest))]
    others = [found.row(at) for at in further[:OTHERS_SENT] if found.sizes[at] >= OTHERS_FROM]
    fields = {"kinds": encoded(kinds), "largest": _list([found.row(at) for at in largest]), **more}
    if look is not None:
        fields["tensors"] = str(len(look.items)) if look.possible else "null"
        fields["hidden"], fields["frozen"] = encoded(look.hidden), encoded(look.left_out)
        fields["alike"] = _list(_alike(found, look.found) if look.possible else [])
    fields["others"] = _list(_within(others, fields))
    return fields


def _single(columns: _Columns, look: Optional[Look], told: "set[int]") -> "list[int]":
    """Return the positions of the tensors with a path of their own, the largest first, but for those *told*."""
    if look is None:
        return []
    first, groups = len(columns.items) - len(look.items), look.found.groups
    places = [at for at in range(first, len(columns.items)) if columns.names[at] and columns.items[at] not in groups]
    return sorted((at for at in places if at not in told), key=lambda at: -columns.sizes[at])


def _within(rows: "list[str]", fields: "dict[str, str]") -> "list[str]":
    """Return the first *rows*, as many as there is room for beside the other *fields*."""
    room = _ROOM - sum(map(len, fields.values()))
    for number, row in enumerate(rows):
        room -= len(row) + 2
        if room < 0:
            return rows[:number]
    return rows


def _list(rows: "list[str]") -> str:
    return f"[{', '.join(rows)}]"


def _alike(columns: _Columns, found: Found) -> "list[str]":
    """Return the largest groups of variables and tensors that are held alike, as they are sent.

    Those to which no path is known are grouped by shape. A tensor that no other is like is no group.
    """
    members: dict[str, int] = {}  # by what they have in common: the first of them
    counts: dict[int, int] = {}
    sizes: dict[int, int] = {}
    outer: dict[int, int] = {}  # the items of the outermost container that hold them
    seen: set[str] = set()
    mixed: set[int] = set()
    groups: list[int] = []  # of each: the first of its group
    shapes, dtypes, devices, kinds = columns.shapes, columns.dtypes, columns.devices, columns.kinds
    for at, item in enumerate(columns.items):
        alike = found.groups.get(item) or found.paths.get(item) or dtypes[at] + shapes[at]
        first = members.setdefault(f"{devices[at]} {kinds[at]} {alike}", at)
        groups.append(first)
        counts[first] = counts.get(first, 0) + 1
        sizes[first] = sizes.get(first, 0) + columns.sizes[at]
        holding = f"{first} {found.items.get(item)}"
        if item in found.items and holding not in seen:
            seen.add(holding)
            outer[first] = outer.get(first, 0) + 1
        if (shapes[first], dtypes[first]) != (shapes[at], dtypes[at]):
            mixed.add(first)
    rows, left = [], 2 * ADDRESSES_SENT
    for first in sorted(counts, key=lambda at: -sizes[at]):
        holder = found.groups.get(columns.items[first], "")
        if counts[first] > 1 or (holder and kinds[first] != KIND):
            of_group = [at for at, group in enumerate(groups) if group == first and kinds[at] == KIND]
            of_group.sort(key=lambda at: -columns.sizes[at])
            known = [columns.addresses[at] for at in of_group if columns.addresses[at]][: min(left, ADDRESSES_SENT)]
            left -= len(known)
            figures = f"{counts[first]}, {'null' if first in mixed else shapes[first]}, {encoded(dtypes[first])}"
            ending = f"{encoded(devices[first])}, {sizes[first]}, {encoded(kinds[first])}, {outer.get(first, 0)}"
            rows.append(f"[{encoded(holder[:NAME])}, {figures}, {ending}{_packed(known)}]")
        if len(rows) == GROUPS_SENT:
            break
    return rows


def _packed(addresses: "list[int]") -> str:
    """Return addresses as they are sent, if there are any: 8 bytes each, the lowest byte first, as base 64."""
    packed = binascii.b2a_base64(pack(f"<{len(addresses)}Q", *addresses), newline=False).decode()
    return f", {encoded(packed)}" if addresses else ""
