"""What Python holds by one path: a list, a dict, a model. Pure."""

import re
from collections.abc import Iterable, Iterator
from functools import reduce

import msgspec
from msgspec.structs import replace

from tfmemtop import events
from tfmemtop.state.holdings import OPTIMIZER, TENSORS

_KEY = re.compile(r"\['[^']*'\]")
_CLOSURE = re.compile(r"\.__closure__\[\d+\]")
"""A cell of what a function captures: its number says nothing to a user."""
_MANY_KEYS = 8
"""From so many keys of a dict on, they are not names that the script's text has, such as ``history['loss']``."""


class Kept(msgspec.Struct, frozen=True):
    """Tensors or variables that Python holds by one ``holder``: its path, such as ``search.done[*][1]``.

    There are ``count`` of them, in ``items`` items of a list or dict (0 if the holder is no such item). ``shape`` is
    ``None`` if they have several. ``model`` if variables of models are among them, ``optimizer`` if optimizers' slots.
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
