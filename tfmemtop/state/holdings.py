"""The memory in use in a process's pools by kind: variables of model, optimizer and metrics, live tensors, the rest.

With it what Python holds by one path: a list, a dict, a model. Pure.
"""

import re
from collections.abc import Iterable, Iterator
from functools import reduce

import msgspec
from msgspec.structs import replace

from tfmemtop import events
from tfmemtop.state.model import Hooked, State

TENSORS = "tensors"
OPTIMIZER = "optimizer"
VARIABLES = "variables"
KINDS = (VARIABLES, OPTIMIZER, "metrics", TENSORS)
"""The kinds of a census, in the order in which they are shown."""

SHOWN = 20
"""How many of the largest variables and tensors are shown."""


class Holdings(msgspec.Struct, frozen=True):
    """The memory in use on one logical device, in bytes. ``kinds`` are pairs of a census's kind and size.

    ``rest`` is the memory in use beyond those: activations, temporaries, and all tensors if none were looked for. It is
    ``None`` where it is not known, and where the kinds are larger than the memory in use. That is possible because the
    censuses are older than the reading, and may count memory that has been freed since. Live tensors were looked for
    ``looked_s`` seconds ago, ``None`` if they were not.
    """

    device: str
    kinds: tuple[tuple[str, int], ...]
    rest: int | None
    looked_s: float | None = None


def holdings(state: State, pid: int) -> Iterator[Holdings]:
    """Yield one for each device with variables of process *pid*, or tensors in a pool, by the newest censuses."""
    process = state.processes.get(pid)
    hooked = process.hooked if process else None
    if hooked is None or hooked.census is None:
        return
    found = {device: _variables(kinds) for device, kinds in hooked.census.kinds.items()}
    look = hooked.look
    looked_s = None
    if look is not None and look.tensors is not None:
        looked_s = state.now - look.t
        for device, kinds in look.kinds.items():
            # Without a pool to compare with, as on the CPU beside a GPU, the size of tensors alone is of little use.
            if TENSORS in kinds and (device in found or device in hooked.allocators):
                found.setdefault(device, {})[TENSORS] = kinds[TENSORS]
    for device, kinds in sorted(found.items()):
        known = sum(kinds.values())
        reading = hooked.allocators.get(device)
        in_use = reading.in_use if reading else None
        yield Holdings(
            device=device,
            kinds=tuple((kind, kinds[kind]) for kind in KINDS if kind in kinds),
            rest=in_use - known if in_use is not None and in_use >= known else None,
            looked_s=looked_s,
        )


def largest(hooked: Hooked) -> list[events.Variable]:
    """Return the largest variables of the newest census and tensors of the newest census that looked for them.

    They are sorted together by size.
    """
    if hooked.census is None:
        return []
    found = [one for one in hooked.census.largest if one.kind != TENSORS]
    if hooked.look is not None:
        found += [one for one in hooked.look.largest if one.kind == TENSORS]
    return sorted(found, key=lambda one: -one.bytes)[:SHOWN]


def _variables(kinds: dict[str, int]) -> dict[str, int]:
    return {kind: size for kind, size in kinds.items() if kind != TENSORS}


_KEY = re.compile(r"\['[^']*'\]")
_CLOSURE = re.compile(r"\.__closure__\[\d+\]")
"""A cell of what a function captures: its number says nothing to a user."""
_MANY_KEYS = 8
"""From so many keys of a dict on, they are not names that the script's text has, such as ``history['loss']``."""


class Kept(msgspec.Struct, frozen=True):
    """Tensors or variables that Python holds by one ``holder``: its path, such as ``search.done[*][1]``.

    There are ``count`` of them, in ``items`` items of a list or dict (0 if the holder is no such item). ``shape`` is
    ``None`` if they have several. ``model`` if variables of models are among them, ``optimizer`` if optimizers' slots.
    ``pieces`` if they were cut from larger tensors, whose ``bytes`` these are: the memory of each stays whole. ``own``
    is the attribute in which each holds another tensor, which is not counted: ``bytes`` are of both.
    """

    holder: str
    count: int
    items: int
    bytes: int
    variables: bool
    model: bool = False
    optimizer: bool = False
    shape: tuple[int, ...] | None = None
    dtype: str = ""
    pieces: bool = False
    own: str = ""

    @property
    def root(self) -> str:
        """The variable from which the path leads: ``search``."""
        return self.holder.partition("[")[0].partition(".")[0]


def kept_of(group: events.Alike) -> Kept:
    """Return what a *group* of a look at the objects says of its holder."""
    return Kept(
        holder=_CLOSURE.sub(".__closure__[*]", group.holder),
        count=group.count,
        items=group.items,
        bytes=group.bytes,
        variables=group.kind != TENSORS,
        model=group.kind not in (TENSORS, OPTIMIZER),
        optimizer=group.kind == OPTIMIZER,
        shape=None if group.shape is None else tuple(group.shape),
        dtype=group.dtype,
    )


def merged(kept: Iterable[Kept]) -> Iterator[Kept]:
    """Yield what is *kept*, as one where many holders differ only in a dict's key: ``store[*].past``."""
    alike: dict[tuple[str, bool], list[Kept]] = {}
    for one in kept:
        alike.setdefault((_KEY.sub("[*]", one.holder), one.variables), []).append(one)
    for (holder, _), ones in alike.items():
        if len(ones) < _MANY_KEYS:
            yield from ones
        else:
            whole = reduce(both, ones)
            yield replace(whole, holder=holder, items=len(ones))


def both(first: Kept, second: Kept) -> Kept:
    """Return two groups as one, such as a model's variables and its optimizer's slots."""
    return Kept(
        holder=first.holder,
        count=first.count + second.count,
        items=max(first.items, second.items),
        bytes=first.bytes + second.bytes,
        variables=first.variables,
        model=first.model or second.model,
        optimizer=first.optimizer or second.optimizer,
        shape=first.shape if first.shape == second.shape else None,
        dtype=first.dtype,
    )
