"""The rules for a card that TensorFlow or JAX reserves: beside another framework, and by JAX alone."""

import math
from collections.abc import Iterator

import msgspec

from tfmemtop import events
from tfmemtop.findings.cause import Key
from tfmemtop.findings.finding import DeviceFinding, Said, Severity
from tfmemtop.findings.names import Callsite, Place, devices_made_at, line_with_code, place_name
from tfmemtop.findings.remedy import BEHIND_THE_IMPORT, GROWTH, Action, Remedy
from tfmemtop.findings.rules import rule
from tfmemtop.findings.rules.outside import BEYOND_USUAL
from tfmemtop.findings.rules.pool import WHOLE_CARD, held_by_pool, takes_everything
from tfmemtop.findings.run_devices import hooked_of_run, run_devices
from tfmemtop.frameworks import JAX_ALLOCATOR, JAX_FRACTION, NEW_JAX_FRACTION, PREALLOCATE, FrameworkName
from tfmemtop.state import State
from tfmemtop.state.holdings import VARIABLES
from tfmemtop.state.lookup import card_of, once_per_revision
from tfmemtop.units import format_bytes

TENSORFLOW, JAX = "TensorFlow", FrameworkName.JAX.title
_NOT = ("false", "False", "0")  # the values of the variable that JAX takes for no
_AT_ONCE = ("", "default", "bfc", "cuda_async")  # JAX's allocators that preallocate
_USUAL_SHARE = 0.75
_MUCH = 0.5  # share of a card
_MODEL = 1 << 10  # bytes of variables; less may be the state of random numbers


_REMEDIES = {
    TENSORFLOW: (Action.HIDE_FROM_TENSORFLOW, Action.GROWTH_ON),
    JAX: (Action.JAX_GROWTH_ON,),
}
_CODE = {
    TENSORFLOW: (
        "import tensorflow as tf",
        BEHIND_THE_IMPORT,
        'tf.config.set_visible_devices([], "GPU")  # if TensorFlow only prepares data',
    ),
    JAX: ("import os", f'os.environ["{PREALLOCATE}"] = "false"  # before JAX is imported'),
}
"""What helps if a framework reserves a card, by its title."""


class Taker(msgspec.Struct, frozen=True):
    """A framework in a process of the run, on one card; ``held`` is its bytes there, ``None`` if not known.

    ``began`` is when it was first seen there, in session seconds, and ``at`` the line that made it begin. ``reserves``
    if it takes memory before it needs it: ``share`` of the whole card, where that is known. ``variables`` are the bytes
    of TensorFlow's variables there: with a model on the card, it does not only prepare data.
    """

    title: str
    pid: int
    began: float
    held: int | None
    reading: events.Allocator | events.Framework | None
    reserves: bool
    share: float | None = None
    at: Callsite | None = None
    variables: int = 0

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        """What helps if it reserves the card."""
        return (Action.GROWTH_ON,) if self.variables >= _MODEL else _REMEDIES[self.title]

    @property
    def code(self) -> tuple[str, ...]:
        return GROWTH if self.variables >= _MODEL else _CODE[self.title]


@once_per_revision
def takers(state: State) -> dict[int, list[Taker]]:
    """Return the frameworks of the run that have memory on each card, by NVML index, in the order in which they began.

    TensorFlow is there once its devices are made.
    """
    found: dict[int, list[Taker]] = {}
    for device in run_devices(state):
        if device.card is not None and device.effective is not None:
            made = device.hooked.initialised
            began, held = (made or device.effective).t, held_by_pool(device) if device.reading else None
            reserves, at = takes_everything(device), devices_made_at(device.hooked)
            census = device.hooked.census
            variables = census.kinds.get(device.name, {}).get(VARIABLES, 0) if census else 0
            taker = Taker(TENSORFLOW, device.pid, began, held, device.reading, reserves, at=at, variables=variables)
            found.setdefault(device.card.info.index, []).append(taker)
    for pid, hooked in hooked_of_run(state):
        for name, reading in hooked.frameworks.items():
            if (card := card_of(state, reading)) is not None:
                share = _preallocated(reading)
                taker = Taker(
                    reading.framework.title, pid, hooked.began[name], reading.pool, reading, bool(share), share
                )
                found.setdefault(card.info.index, []).append(taker)
    return {index: sorted(those, key=lambda taker: taker.began) for index, those in found.items()}


def _preallocated(reading: events.Framework) -> float | None:
    """Return the share of the card that the framework preallocates, as JAX does unless it is told not to."""
    given = reading.settings
    grows = given.get(PREALLOCATE) in _NOT or given.get(JAX_ALLOCATOR, "").lower() not in _AT_ONCE
    if reading.framework is not FrameworkName.JAX or grows:
        return None
    try:
        share = float(given.get(NEW_JAX_FRACTION) or given.get(JAX_FRACTION) or _USUAL_SHARE)
    except ValueError:
        return None  # then JAX has no GPU
    return share if math.isfinite(share) else None


class CardShared(DeviceFinding, frozen=True):
    """Framework ``first`` of the run reserved the card, of ``whole`` bytes, on which another one, ``other``, is too."""

    key = Key.OTHER_FRAMEWORK

    first: Taker
    other: Taker
    whole: int

    @property
    def severity(self) -> Severity:
        little_left = (self.first.held or 0) >= self.whole * WHOLE_CARD
        return Severity.WARNING if little_left or self.other.reserves else Severity.INFO

    @property
    def _reserving(self) -> list[Taker]:
        return [taker for taker in (self.first, self.other) if taker.reserves]

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        return tuple(remedy for taker in self._reserving for remedy in taker.remedies)

    @property
    def said(self) -> Said:
        first, other = self.first, self.other
        at = f" at {line_with_code(first.at)}" if first.at else ""
        where = f" in process {first.pid}" if first.pid != other.pid else ""
        then = f"before {other.title} began" if first.began < other.began else f"beside {other.title}"
        share = f", which itself preallocates {other.share * 100:.0f} % of the card" if other.share else ""
        return Said(
            f"{place_name(self.place)}: {first.title}{where} took {format_bytes(first.held)} of the card's "
            f"{format_bytes(self.whole)}{at} {then}{share}.",
            "TensorFlow without growth takes nearly all that is free on a card when it initialises its devices, and "
            "JAX 75 % of the whole card, even if they need less. Neither gives memory back. If TensorFlow only "
            "prepares data, such as with tf.data, it needs no GPU.",
            tuple(line for taker in self._reserving for line in taker.code),
            f"{other.title} holds {format_bytes(other.held)}." if other.held else "",
        )


class OtherPools(DeviceFinding, frozen=True):
    """The frameworks ``others`` of the run hold much of a card beside TensorFlow, and none has reserved it."""

    key = Key.OTHER_FRAMEWORK
    severity = Severity.INFO
    remedies = (Action.SHOW_PROCESS,)

    others: tuple[Taker, ...]

    @property
    def holder(self) -> str:
        return ", ".join(taker.title for taker in self.others)

    @property
    def said(self) -> Said:
        first, *more = (f"{taker.title} holds {format_bytes(taker.held)}" for taker in self.others)
        each = ", ".join((first, *(text.replace(" holds", "") for text in more)))
        return Said(
            f"{place_name(self.place)}: beside TensorFlow's pool, {each}.",
            "Each framework has a pool of its own, which get_memory_info does not see and no limit of TensorFlow's "
            "covers. Memory that one of them has freed stays in its pool, and the others do not get it.",
        )


@rule(170)
def card_shared(state: State) -> Iterator[CardShared | OtherPools]:
    """Find cards on which several frameworks of the run are, if one has reserved it or others hold much."""
    for index, those in takers(state).items():
        first = next((taker for taker in those if taker.reserves and taker.held), None)
        others = [taker for taker in those if first is not None and taker.title != first.title]
        whole = state.devices[index].info.total
        if first is not None and others and whole:
            other = next((taker for taker in others if taker.reserves), others[0])
            yield CardShared(Place(index), first, other, whole)
        elif first is None and TENSORFLOW in [taker.title for taker in those]:
            beside = sorted((one for one in those if one.title != TENSORFLOW), key=lambda one: -(one.held or 0))
            if sum(one.held or 0 for one in beside) >= BEYOND_USUAL:
                yield OtherPools(Place(index), tuple(beside))


class JaxPreallocated(DeviceFinding, frozen=True):
    """JAX has preallocated ``held`` of the card's ``whole`` bytes, and had at most ``peak`` in use.

    ``growth_chosen`` if the user chose growth, but it was not known before the run that it uses JAX.
    """

    key = Key.RESERVED

    held: int
    whole: int
    peak: int
    growth_chosen: bool = False

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        return (Action.JAX_AGAIN,) if self.growth_chosen else _REMEDIES[JAX]

    @property
    def severity(self) -> Severity:
        return Severity.WARNING if self.peak < self.held / 2 else Severity.INFO

    @property
    def said(self) -> Said:
        return Said(
            f"{place_name(self.place)}: JAX preallocated {format_bytes(self.held)} of the card's "
            f"{format_bytes(self.whole)}.",
            "When JAX begins, it takes 75 % of the whole card, or the share that XLA_PYTHON_CLIENT_MEM_FRACTION says, "
            "even if the script needs less. nvidia-smi counts all of it as used, however much of it is in use. Without "
            "preallocation the pool starts small and grows; it gives nothing back before the process ends.",
            _CODE[JAX],
            f"At most {format_bytes(self.peak)} were in use.",
        )


@rule(210)
def jax_preallocated(state: State) -> Iterator[JaxPreallocated]:
    """Find cards of which JAX has preallocated much."""
    chosen = state.run is not None and state.run.settings.growth == "on"
    for index, those in takers(state).items():
        whole = state.devices[index].info.total
        for taker in those:
            held, peak = taker.held or 0, taker.reading.peak if taker.reading else None
            if taker.share and whole and peak is not None and held >= whole * _MUCH:
                yield JaxPreallocated(Place(index), held, whole, peak, chosen)
