"""The inventory of a pool: what is in use at one moment, and who keeps it. Pure.

What Python holds comes from the look at the script's objects, what TensorFlow allocated from the recorded window. A
buffer that the look finds twice, such as that of two views, is counted once, by its address. Where no addresses are
known, the bytes of a group are what it has at most. Each byte in use is in one group all the same.
"""

import re
from collections import Counter
from collections.abc import Iterator
from enum import Enum
from functools import cached_property

import msgspec
from msgspec.structs import replace

from tfmemtop import events
from tfmemtop.events.allocations import TraceAllocations, unpack
from tfmemtop.events.damage import Damaged
from tfmemtop.events.machine import is_cpu
from tfmemtop.state.attribution import Kind, assigns
from tfmemtop.state.holders import By, Part, standing
from tfmemtop.state.holdings import OPTIMIZER, TENSORS, Kept, both, kept_of, merged
from tfmemtop.state.located import FRESH_S, lies_in
from tfmemtop.state.model import RETRIED_S, Hooked
from tfmemtop.state.operation_names import names_constant
from tfmemtop.state.windows import recorded, unpacked

_OWN = re.compile(r"\[\*\](\._\w+)+$")
"""An object's own attributes, of one of many: Keras keeps the logits of a result of softmax so."""
_INDEX = re.compile(r"\[\d+\]")
NUMBER = re.compile(r"_\d+(?=[/_]|$)")
_UNNAMED = "Variable", "variable"  # what TensorFlow and Keras call a variable to which the script gives no name
_NEARLY, _MOST = 0.98, 0.9
_LARGER = 1.5
"""Times the bytes of tensors, by their shapes. In allocations that have more bytes, they are pieces of those."""

_FEW = 4  # tensors for each variable, as a step makes them


class Group(Enum):
    """Who keeps memory in use. What is known best is counted first."""

    VARIABLES = "variables"  # of models and of the script
    OPTIMIZER = "optimizer"  # slots
    HELD = "held"  # tensors that Python holds by a path
    CONSTANTS = "constants"  # of traced functions
    DATASETS = "datasets"  # buffers and batches
    COMPILED = "compiled"  # buffers and results of functions that XLA has compiled
    SCRATCH = "scratch"  # memory that an operation needs while it runs
    RECORDED = "recorded"  # results of recorded operations
    DROPPED = "dropped"  # variables that no Python object holds: TensorFlow itself does
    NO_NAME = "no name"


_RECORDED = {
    Kind.INPUT: Group.DATASETS,
    Kind.XLA: Group.COMPILED,
    Kind.RESULTS: Group.COMPILED,
    Kind.ROUNDING: Group.COMPILED,
    Kind.WORKSPACE: Group.SCRATCH,
}
_KEPT_BY_PYTHON = Kind.VARIABLES, Kind.OPTIMIZER  # the census has them all
_NAMELESS = Kind.BEFORE, Kind.UNKNOWN


class Copies(msgspec.Struct, frozen=True):
    """Variables alike, named ``name``, as of ``number`` models: ``bytes`` of all, ``same`` if of the same shapes.

    ``slots`` if they are those of optimizers.
    """

    name: str
    number: int
    bytes: int
    same: bool
    slots: bool = False


class Inventory(msgspec.Struct, frozen=True, dict=True):
    """What is in use in the pool of ``device`` at a moment, ``in_use`` bytes by TensorFlow's allocator.

    ``census`` has the variables, ``look`` the tensors that Python held; ``None`` if there was no look at that moment.
    ``parts`` are the recorded allocations that were in use, the largest first; empty if nothing was recorded.
    ``operations`` are the names of all operations that were recorded in the pool.
    """

    device: str
    in_use: int
    census: events.Census | None
    look: events.Census | None
    parts: tuple[Part, ...]
    operations: frozenset[str] = frozenset()

    @cached_property
    def kept(self) -> list[Kept]:
        """What Python holds by a path, the largest first: lists, dicts, models, single tensors."""
        found: dict[tuple[str, bool], Kept] = {}
        counted = {one.address for one in self._named_variables()}
        for group in self.look.alike if self.look else ():
            if group.holder and lies_in(group.device, self.device):
                again = len(group.addresses) - len(set(group.addresses) - counted)
                counted.update(group.addresses)
                own = group.count - again
                one = replace(kept_of(group), count=max(1, own), bytes=group.bytes * own // group.count)
                before = found.get((one.holder, one.variables))
                found[one.holder, one.variables] = both(before, one) if before else one
        for holder, variables in list(found):
            of_these = _OWN.sub("", holder), False
            if holder != of_these[0] and of_these in found and not variables:
                whole = both(found[of_these], found.pop((holder, False)))
                found[of_these] = replace(whole, count=found[of_these].count, own=holder.rpartition(".")[2])
        grouped = tuple(_INDEX.sub("[*]", one.holder) for one in found.values() if not one.variables)
        for tensor in self.singles:
            if not _INDEX.sub("[*]", tensor.name).startswith(grouped):
                shape = tuple(tensor.shape)
                found.setdefault(
                    (tensor.name, False), Kept(tensor.name, 1, 0, tensor.bytes, False, shape=shape, dtype=tensor.dtype)
                )
        return sorted(map(self._whole, merged(found.values())), key=lambda one: -one.bytes)

    def _whole(self, one: Kept) -> Kept:
        """Return *one* with the whole tensors from which its tensors were cut: ``batch[0]`` keeps all of ``batch``.

        On the CPU, a tensor that shares the memory of a NumPy array is in no pool.
        """
        parts = [part for part in self.parts if part.python_name == one.holder]
        size = sum(part.requested for part in parts)
        if one.bytes > self.in_use and size and not one.variables:
            return replace(one, count=sum(part.count for part in parts), bytes=size)
        pieces = not one.variables and one.shape is not None and size > _LARGER * one.bytes
        return replace(one, bytes=size, pieces=True) if pieces else one

    @property
    def singles(self) -> list[events.Variable]:
        """The tensors that Python holds by a path, one by one: the largest, and those that are in no group."""
        told = (*self.look.largest, *self.look.others) if self.look else ()
        return [one for one in told if one.kind == TENSORS and one.name and self._lies_here(one.device)]

    @cached_property
    def loose(self) -> list[events.Alike]:
        """Groups of tensors of one shape to which no path in Python was found, the largest first."""
        told = [one for one in (self.look.alike if self.look else ()) if not one.holder and one.kind == TENSORS]
        # A tensor with the shape of a variable may be a view of it, which has no memory of its own, or its gradient.
        variables = Counter(tuple(one.shape) for one in self._named_variables())
        here = [(one, variables[tuple(one.shape or ())]) for one in told if self._lies_here(one.device)]
        own = [one for one, alike in here if not alike or (one.count > _FEW * alike and self._apart(one))]
        return sorted(own, key=lambda one: -one.bytes)

    def _apart(self, group: events.Alike) -> bool:
        """Return whether the tensors of *group* have memory of their own, by their addresses."""
        known = {one.address for one in self._named_variables()}
        return bool(group.addresses) and len(set(group.addresses) - known) == len(group.addresses)

    @cached_property
    def groups(self) -> dict[Group, int]:
        """The bytes in use by who keeps them. They add up to ``in_use``."""
        found: Counter[Group] = Counter()
        left = self.in_use
        for group, size in self._counted():
            size = min(size, left)
            found[group] += size
            left -= size
        found[Group.NO_NAME] += left
        return {group: found[group] for group in Group if found[group]}

    def _counted(self) -> Iterator[tuple[Group, int]]:
        yield Group.VARIABLES, self._variables.total() - self._variables[OPTIMIZER]
        yield Group.OPTIMIZER, self._variables[OPTIMIZER]
        yield Group.HELD, sum(one.bytes for one in self.kept if not one.variables)
        sizes: Counter[Group] = Counter()
        for part in self.parts:
            if part.python_name or part.kind in (*_KEPT_BY_PYTHON, *_NAMELESS):
                continue
            group = Group.CONSTANTS if is_constant(part, self.device) else _RECORDED.get(part.kind, Group.RECORDED)
            sizes[group] += part.bytes
        yield from ((group, sizes[group]) for group in Group)
        yield Group.DROPPED, self.dropped

    @property
    def rest(self) -> int:
        """Bytes in use that Python does not hold by a path: steps, tapes, buffers, constants, TensorFlow itself."""
        held = Group.VARIABLES, Group.OPTIMIZER, Group.HELD
        return self.in_use - sum(self.groups.get(group, 0) for group in held)

    @cached_property
    def gone(self) -> tuple[int, int, int]:
        """Number and bytes of the variables that the script made and Python no longer holds; bytes of optimizers'."""
        found = [one for one in (self.census.gone if self.census else ()) if self._lies_here(one.device)]
        return sum(one.count for one in found), sum(one.bytes for one in found), sum(one.slots for one in found)

    @cached_property
    def dropped(self) -> int:
        """Bytes in use of variables that Python no longer holds: of those that were recorded, or of what is older."""
        before = sum(part.bytes for part in self.parts if part.kind is Kind.BEFORE)
        own = {(part.operation, part.shape) for part in self.parts if _is_value(part) and part.python_name}
        # What no variable has any more, and was made as the value of one that is there.
        values = sum(
            part.bytes
            for part in self.parts
            if _is_value(part) or (not part.python_name and (part.operation, part.shape) in own)
        )
        return min(self.gone[1], before + max(0, values - self.model))

    @property
    def left_over(self) -> Part | None:
        """The recorded values of a variable of which there are several, and which take most; ``None`` without any."""
        several = (part for part in self.parts if _is_value(part) and part.python_name and part.count > 1)
        return max(several, key=lambda part: part.bytes, default=None)

    @cached_property
    def _variables(self) -> Counter[str]:
        """The bytes of the variables that Python holds, by their kind."""
        kinds: Counter[str] = Counter()
        for device, of_device in (self.census.kinds if self.census else {}).items():
            if self._lies_here(device):
                kinds.update({kind: size for kind, size in of_device.items() if kind != TENSORS})
        return kinds

    @property
    def model(self) -> int:
        """The bytes of the variables and slots that Python holds: also of those that have no memory of their own yet.

        Slots that begin with zeros share these until the first step has ended.
        """
        return self._variables.total()

    @cached_property
    def copies(self) -> Copies:
        """The variables that are there most often, as if of so many models.

        Copies have one name, or belong to as many models or optimizers: ``sequential_3/dense_10/kernel``, of which the
        shapes may differ. Layers of one model are no copies, though their names differ in numbers alone.
        """
        owners: dict[tuple[str, tuple[int, ...]], dict[str, set[tuple[int, ...]]]] = {}
        names: dict[tuple[str, tuple[int, ...]], Counter[str]] = {}
        sizes: Counter[tuple[str, tuple[int, ...]]] = Counter()
        slots: set[tuple[str, tuple[int, ...]]] = set()
        for one in self._named_variables():
            if one.name in _UNNAMED:
                continue
            owner, *parts = one.name.split("/")
            owned, shape = len(parts) > 1 or one.kind == OPTIMIZER, tuple(one.shape)
            root = NUMBER.sub("", one.name), () if owned else shape
            names.setdefault(root, Counter())[one.name] += 1
            sizes[root] += one.bytes
            if one.kind == OPTIMIZER:
                slots.add(root)
            if owned:
                owners.setdefault(root, {}).setdefault(owner, set()).add(shape)
        if not names:
            return Copies("", 0, 0, same=True)
        numbers = {root: max(_models(found) if root in owners else 0, *found.values()) for root, found in names.items()}
        named = [root for root in sizes if numbers[root] > 1 and root not in slots]  # a model's names say more
        most = max(named or sizes, key=lambda root: (sizes[root], root))
        number, shapes = numbers[most], list(owners.get(most, {}).values())
        # The last model may have no slots yet, and a census has no room for the smallest variables of many.
        size = sum(size for root, size in sizes.items() if numbers[root] >= max(2, number - 1))
        whole = max(shapes, key=len, default=set())
        return Copies(most[0], number, size, same=all(each <= whole for each in shapes), slots=most in slots)

    @cached_property
    def shapes(self) -> set[tuple[int, ...]]:
        """The shapes of the variables that Python holds."""
        return {tuple(one.shape) for one in self._named_variables()}

    @property
    def tables(self) -> list[tuple[str, tuple[int, ...]]]:
        """Name and shape of the model's variables with two dimensions, such as embeddings."""
        named = self._named_variables()
        return [(one.name, tuple(one.shape)) for one in named if len(one.shape) == 2 and one.kind != OPTIMIZER]

    def _named_variables(self) -> list[events.Variable]:
        census = self.census
        told = (*census.largest, *census.others) if census else ()
        return [one for one in told if one.kind != TENSORS and self._lies_here(one.device)]

    @property
    def by_kind(self) -> list[tuple[Kind, int]]:
        """The recorded allocations in use by their purpose, in bytes, the largest first."""
        sizes: Counter[Kind] = Counter()
        for part in self.parts:
            sizes[part.kind] += part.bytes
        return sizes.most_common()

    @property
    def all_recorded(self) -> bool:
        """Whether the ``parts`` are nearly all that is in use. If not, they are most often of an earlier moment."""
        return sum(part.bytes for part in self.parts) >= _MOST * self.in_use

    @property
    def slots(self) -> int:
        """The bytes of optimizers' slots that are known as such."""
        return sum(part.bytes for part in self.parts if part.kind is Kind.OPTIMIZER and _is_value(part))

    def array_of(self, size: int) -> events.HostArray | None:
        """Return the NumPy array whose copy has *size* bytes, in its own precision or in half of it."""
        arrays = self.census.arrays if self.census else []
        wanted = (one for one in arrays if one.dtype and size in (one.bytes, one.bytes // 2))
        return next(wanted, None)

    def _lies_here(self, device: str) -> bool:
        return lies_in(device, self.device)


def _models(names: Counter[str]) -> int:
    """Return how many models have variables of these *names*: models in several threads may have one name."""
    most: Counter[str] = Counter()
    for name, count in names.items():
        owner = name.partition("/")[0]
        most[owner] = max(most[owner], count)
    return most.total()


def is_constant(part: Part, device: str) -> bool:
    """Return whether a graph's constant is in *part* of the pool of *device*. It is neither an output nor temporary.

    On a GPU many outputs have no recorded shape either, such as
    those of Tanh. There only the name counts.
    """
    of_node = part.kind not in (Kind.XLA, Kind.RESULTS) and part.operation and not part.operation.startswith("__")
    unlike = of_node and not (part.python_name or part.region)
    return names_constant(part.operation) or (is_cpu(device) and part.shape is None and bool(unlike))


def _is_value(part: Part) -> bool:
    """Return whether *part* is the value of a variable: its first one, one that was assigned later, or XLA's result."""
    if part.kind not in (Kind.VARIABLES, Kind.OPTIMIZER):
        return part.kind is Kind.RESULTS
    return bool(part.python_name) or assigns(part.operation)


def inventory(hooked: Hooked, device: str, in_use: int, t: float, since: float | None = None) -> Inventory:
    """Return the inventory of a pool at *t* seconds, in which *in_use* bytes were in use, from *since* on if known."""
    # After the failure the script may have let go of what it held. But before, the local variables of a function that
    # ran may not have been searched, nor all tensors read. So of two looks the one counts that found more, by a path
    # above all; else the earlier one. A tape may have been open at the earlier one only. An older one counts if most of
    # what it found was recorded, and is there still.
    parts = _parts(hooked, device, in_use, t)
    still = sum(part.bytes for part in parts if part.kind is Kind.TENSORS and part.python_name)
    looks = [hooked.failure.look if hooked.failure else None, hooked.look]
    began = min(t, t if since is None else since) - FRESH_S
    known = [look for look in looks if look and look.tensors is not None and look.t <= t + FRESH_S]
    near = [look for look in known if began <= look.t or 0 < look.found_by_path[0] <= 2 * still]
    look = max(near, key=lambda one: one.found_by_path, default=None)
    if look is not None:
        look = replace(look, tapes=max((one.tapes or 0 for one in near if began <= one.t), default=0))
    census = look or hooked.census
    if hooked.failure and census and not any(lies_in(place, device) for place in census.kinds):
        census = hooked.failure.census  # a session of TensorFlow 1 has let go of its variables after the failure
    return Inventory(device, in_use, census, look, parts, _operations(hooked, device))


def _operations(hooked: Hooked, device: str) -> frozenset[str]:
    windows = hooked.windows.get(device)
    if windows is None:
        return frozenset()
    found = {name for window in recorded(windows) for name in unpacked(window).names}
    try:
        found.update(name for part in windows.trace for name in unpack(part.packed, TraceAllocations).names)
    except Damaged:
        pass  # the recording was cut or changed; what the windows say still holds
    return frozenset(found)


def _parts(hooked: Hooked, device: str, in_use: int, t: float) -> tuple[Part, ...]:
    """Return the allocations in use at *t* seconds, by the newest window that began before.

    What a failed step held is released at once, often within the window. So in a window of the last seconds, the last
    moment counts at which about so much was *in use*, or else more.
    """
    known = [one for one in recorded(hooked.windows.get(device)) if one.began <= t]
    if not known:
        return ()
    # TensorFlow tries for a while before it fails, and meanwhile several windows may end.
    near = sorted((one for one in known if one.ended >= t - RETRIED_S), key=lambda one: (-one.ended, -one.began))
    least, most = int(_NEARLY * in_use), int(in_use / _NEARLY)
    newest = max(known, key=lambda one: (one.ended, one.began))  # of several, one may have gone on for long
    window = next((one for one in near if any(least <= held <= most for held in unpacked(one).in_use)), newest)
    course = unpacked(window)
    at = course.events - 1
    if window in near and not least <= course.held(at) <= most:
        at = course.last_held(least, most, at)
    found = standing(window, hooked, By.OPERATION, at)
    parts = [part for row in found.holders for part in row.parts] + list(found.nameless)
    return tuple(sorted(parts, key=lambda part: -part.bytes))
