"""The rule for leaks: memory in use that keeps rising, or that rose until a pool was full."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil

from tfmemtop.events import Alike
from tfmemtop.events.device_names import DeviceKind
from tfmemtop.findings.callsite import Callsite
from tfmemtop.findings.causes import (
    Cause,
)
from tfmemtop.findings.finding import DeviceFinding, Question, Said, joined
from tfmemtop.findings.places import line_of, place_name
from tfmemtop.findings.remedy import Action, Remedy
from tfmemtop.findings.requests import tensor_text
from tfmemtop.findings.rising import BEGINS, LEAST_WINDOWS, Rise, merged, merged_if_higher, rise_until, rises, slope
from tfmemtop.findings.run_devices import RunDevice, run_devices
from tfmemtop.state import State
from tfmemtop.state.anatomy import Anatomy, anatomies, trying, waited
from tfmemtop.state.growing import Grown, growing
from tfmemtop.state.holdings import alike_on
from tfmemtop.state.lookup import hooked_of
from tfmemtop.state.model import Hooked
from tfmemtop.state.steps import pace
from tfmemtop.state.trend import LONG_S, Trend, UseWindow
from tfmemtop.units import MIB, counted, format_bytes, rough, rough_time, spoken

LEAK_WINDOWS = 18
"""Windows of ten seconds. No rise is called a leak before three minutes have passed, unless it has filled its pool."""

LEAK_LOOKED_AT = 90
EPOCHS = (3, 6)
"""How many windows are merged into one stretch, for a leak that grows once an epoch. Three stretches must hold an
epoch."""

LEAK_AT_LEAST = 32 * MIB
"""Bytes. A smaller rise is not called a leak: it matters little, and may end by itself."""

LEAK_SHARE = 0.003
"""The same, as a share of what is in use: where much is in use, so small a part of it also varies without a leak."""

FILLED_AT_LEAST = 8 * MIB
FILLED_SHARE = 0.125
"""The least rise that counts as filling a pool, as a share of what was in use when the pool was full."""

MANY = 8
"""The least number of steps, tensors or chunks of a leak. A batch that grows fills a pool with a few, ever larger
tensors: that is no leak."""

LIST_OF_MANY, FEW_WINDOWS = 64, 6
"""Where memory was full within seconds, there are few windows. Then a list or dict of so many tensors is evidence, and
so few windows are enough."""

_WAITED_S = 10.0
"""Seconds that TensorFlow looks for room before an allocation fails. Meanwhile the memory in use does not change."""


def scalars(holder: Alike | None) -> bool:
    """Return whether the tensors held are scalars, the only ones that ``float()`` accepts."""
    return holder is not None and holder.shape == []


def keeping_less(holder: Alike | None) -> Remedy:
    """Return what the script should keep instead of the tensors *holder*, which is ``None`` if they are not known."""
    return Remedy(Action.KEEP_NUMBERS if scalars(holder) else Action.KEEP_ARRAYS)


@dataclass(frozen=True, slots=True)
class Leak(DeviceFinding):
    """Memory in use has been rising by ``rise`` bytes a second for ``span_s`` seconds, or did so until it ``ended``.

    The lowest use in equal stretches of time (``windows`` of them) rose from the first of ``lows`` to the second. The
    highest use rose in the same way, by ``highs``. ``room`` is the bytes that can still be used, ``None`` where that is
    not known. ``rate`` is in ``unit`` (``steps`` or ``calls``) a second, ``None`` where they are not counted.
    ``holder`` are the tensors that make up most of the rise, where these were looked for; ``grown`` are the allocations
    that do, according to the windows in which they were recorded. A leak that has filled its pool is not this finding,
    but :class:`Leaked`, the cause of the failure.
    """

    answers = Question.EFFICIENTLY

    rise: float
    span_s: float
    windows: int
    lows: tuple[int, int]
    highs: tuple[int, int]
    room: int | None
    rate: float | None
    unit: str
    ended: bool
    holder: Alike | None = None
    grown: Grown | None = None

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        return (keeping_less(self.holder),)

    @property
    def each(self) -> int | None:
        """The bytes by which memory rises in a step, or a call; ``None`` where these are not counted."""
        return int(self.rise / self.rate) if self.rate else None

    @property
    def left_s(self) -> float | None:
        """Seconds until the memory is used up at this pace; ``None`` where that is not known, or if it is used up."""
        return self.room / self.rise if self.room is not None and self.room > 0 else None

    @property
    def left_steps(self) -> float | None:
        """Steps, or calls, until the memory is used up; ``None`` where that or their rate is not known."""
        return self.left_s * self.rate if self.left_s is not None and self.rate else None

    @property
    def said(self) -> Said:
        rises, has = ("rose", "It rose") if self.ended else ("is rising", "It has been rising")
        pace = f"{format_bytes(int(self.rise * 60))} a minute"
        if self.each is not None:
            pace = f"{format_bytes(self.each)} a {self.unit.rstrip('s')}"
        figures = f"{has} steadily for {spoken(max(1.0, self.span_s))}, also at its lowest points."
        if self.left_s is not None:
            steps = f" ({rough(self.left_steps)} {self.unit})" if self.left_steps is not None else ""
            full = "At that pace it would have been full" if self.ended else "At this pace the memory is full"
            figures += f" {full} in {rough_time(self.left_s)}{steps}."
        if self.holder is not None:
            figures += f" {holding(self.holder)}"
        if self.grown is not None:
            figures += f" {kept_by_windows(self.grown)}"
        return Said(
            f"{place_name(self.place)}: memory in use {rises} by {pace}, which looks like a leak.",
            f"In {self.windows} equal stretches of time the lowest use rose from {format_bytes(self.lows[0])} to "
            f"{format_bytes(self.lows[1])}, the highest from {format_bytes(self.highs[0])} to "
            f"{format_bytes(self.highs[1])}. {WHY_IT_LEAKS}",
            keep_less(self.holder),
            figures,
        )


@dataclass(frozen=True, slots=True)
class Leaked(Cause):
    """The cause of a failure: a steady ``rise`` of the memory in use, by ``each`` bytes in each step or call.

    ``each`` is ``None`` where steps are not counted. ``holder`` are the tensors that make up most of the rise, where
    these were looked for; ``grown`` are the allocations that do, according to the windows. ``limit`` is the pool's.
    """

    rise: Rise
    each: int | None
    unit: str
    holder: Alike | None
    limit: int | None
    grown: Grown | None = None

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        return (keeping_less(self.holder),)

    @property
    def said(self) -> Said:
        each = f", by {format_bytes(self.each)} a {self.unit.rstrip('s')}" if self.each is not None else ""
        rise = self.rise
        rose = f"rose steadily for {spoken(max(1.0, rise.span_s))}{each}"
        figures = f"Memory that was never freed rose from {format_bytes(rise.first)} to {format_bytes(rise.last)}."
        if self.holder is None:
            headline = f"A leak filled the pool: memory in use {rose}."
        else:
            whole = f" of the limit of {format_bytes(self.limit)}" if self.limit is not None else ""
            tensors = holding(self.holder).rstrip(".")
            headline, figures = f"{tensors}{whole}: a leak.", f"Memory in use {rose}. {figures}"
        return Said(headline, WHY_IT_LEAKS, keep_less(self.holder), joined(figures, kept_by_windows(self.grown)))


def leak(state: State) -> Iterator[Leak]:
    """Find devices whose memory in use keeps rising, at its low points and at its high ones."""
    full = _filled(state)
    for device in [*run_devices(state), *run_devices(state, DeviceKind.CPU)]:
        found = None if (device.pid, device.name) in full else _rising(state, device)
        if found is not None:
            yield found


def leaks(state: State) -> bool:
    """Return whether memory leaks, or did so until a pool was full."""
    return any(leak(state)) or bool(_filled(state))


def _filled(state: State) -> set[tuple[int, str | None]]:
    """Return process and device of each pool that a leak has filled."""
    return {(a.pid, a.device) for a in [*anatomies(state), *trying(state)] if leaked(state, a)}


def leaked(state: State, a: Anatomy) -> Leaked | None:
    """Return the leak that filled the pool in which an allocation found no room; ``None`` if no leak filled it.

    A leak filled the pool if all of this is true: the memory that was never freed again rose steadily to the end; a
    good part of the memory in use comes from that rise; without the rise there would have been room; and the rise
    consists of many pieces, which were made in as many steps or are held by one list.
    """
    hooked = hooked_of(state, a.pid)
    if hooked is None or a.device is None or a.in_use is None or a.scratch:
        return None
    failure = hooked.failure if hooked.failure and a.message else None
    trend = (failure.trends if failure else hooked.trends).get(a.device)
    if trend is None:
        return None
    failed = failure.error.t if failure else state.now
    found = leaked_until(hooked, a.device, trend, failed, a.in_use)
    whole = a.limit if a.limit is not None else a.card_total
    if found and a.asked is not None and whole is not None and a.in_use - found.rise.size + a.asked > whole:
        return None
    return found and replace(found, limit=a.limit)


def leaked_until(hooked: Hooked, device: str, trend: Trend, failed: float, in_use: int) -> Leaked | None:
    """Return the leak that led to *in_use* bytes in use when an allocation failed; ``None`` if no leak did.

    *failed* is the time of that failure, in seconds of the session.
    """
    listed = any(one.holder and one.count >= LIST_OF_MANY for one in alike_on(hooked, device))
    until = _stood_still(hooked, failed)
    histories = trend.whole.windows, trend.long, trend.short, *(merged(trend.whole.windows, times) for times in EPOCHS)
    rise = rise_until(histories, until, FEW_WINDOWS if listed else LEAST_WINDOWS)
    if rise is None or rise.size < max(FILLED_AT_LEAST, in_use * FILLED_SHARE):
        return None
    steps, unit = steps_of(hooked, rise)
    holder = _holder(hooked, device, rise.size)
    if holder is None and (steps < MANY or not _in_pieces(hooked, device, rise.size)):
        return None
    grown = _grown(hooked, device, rise.size / max(1.0, rise.span_s))
    return Leaked(rise, int(rise.size / steps) if steps >= MANY else None, unit, holder, None, grown)


def _stood_still(hooked: Hooked, failed: float) -> float:
    """Return when the allocation that failed at the time *failed* began to wait for room."""
    waiting = waited(hooked, failed)
    return waiting.t if waiting and waiting.t <= failed else failed - _WAITED_S


def steps_of(hooked: Hooked, rise: Rise) -> tuple[float, str]:
    """Return how many steps the process made during *rise*, and their unit.

    The unit is ``calls`` where it is not known how many steps one call takes.
    """
    course = hooked.steps.busiest
    if course is None:
        return 0.0, "steps"
    calls = course.calls_at(rise.end) - course.calls_at(rise.start)
    each = course.function.steps
    return (calls, "calls") if each is None else (calls * each, "steps")


def _in_pieces(hooked: Hooked, device: str, size: int) -> bool:
    """Return whether half of *size* bytes may consist of many chunks of like size, by the map of the full pool.

    True also if there is no map of that moment.
    """
    pool = hooked.pools.get(device)
    sizes = pool.exhausted.sizes if pool and pool.exhausted else []
    return not sizes or sum(count << power + 1 for power, count in enumerate(sizes) if count >= MANY) >= size / 2


def _holder(hooked: Hooked, device: str, size: int) -> Alike | None:
    """Return the tensors, many and held alike, that make up at least half of *size* bytes, by the newest census."""
    return next((one for one in alike_on(hooked, device) if one.count >= MANY and one.bytes >= size / 2), None)


def _grown(hooked: Hooked, device: str, rise: float) -> Grown | None:
    """Return the allocations that make up at least half of a *rise* in bytes a second, by the windows of the pool."""
    return next((one for one in growing(hooked, device)[:1] if one.rate >= rise / 2), None)


def _rising(state: State, device: RunDevice) -> Leak | None:
    if device.trend is None or device.reading is None or device.reading.in_use is None:
        return None
    windows = next(filter(_rise_steadily, _stretches(device.trend)), None)
    if windows is None:
        return None
    lows, highs = [window.low for window in windows], [window.high for window in windows]
    span_s = windows[-1].start - windows[0].start
    rise = min(slope(windows, lows), slope(windows, highs))
    if rise * span_s < max(LEAK_AT_LEAST, lows[-1] * LEAK_SHARE):
        return None
    going = pace(device.hooked.steps, state.now)
    return Leak(
        device.place,
        rise=rise,
        span_s=span_s,
        windows=len(windows),
        lows=(lows[0], lows[-1]),
        highs=(highs[0], highs[-1]),
        room=_room(device, highs[-1]),
        rate=going.whole if going else None,  # over the whole run, as the rise is over most of it
        unit=going.unit if going else "",
        ended=device.hooked.ended,
        holder=_holder(device.hooked, device.name, int(rise * span_s)),
        grown=_grown(device.hooked, device.name, rise),
    )


def _stretches(trend: Trend) -> Iterator[list[UseWindow]]:
    """Yield the stretches of time in which to look for a steady rise.

    First comes the last quarter of an hour, in windows of ten seconds. Such a rise has often begun with a jump, when
    the model was made, so later parts of that quarter come next. Then come longer times in longer windows.
    """
    windows, whole = list(trend.long)[:-1], trend.whole.windows[:-1]  # the newest is not complete
    recent = windows[-LEAK_LOOKED_AT:]
    for share in BEGINS:
        yield recent[ceil(len(recent) * share) :]
    for times in EPOCHS:
        yield merged_if_higher(windows, times)
    if trend.whole.width_s >= LONG_S:
        for times in (1, *EPOCHS):
            yield merged_if_higher(whole, times)


def _rise_steadily(windows: list[UseWindow]) -> bool:
    lows, highs = [window.low for window in windows], [window.high for window in windows]
    return len(windows) >= LEAK_WINDOWS and rises(lows) and rises(highs)


def _room(device: RunDevice, highest: int) -> int | None:
    """Return the bytes that can still be used: up to the limit, and up to what the pool holds and the card has free."""
    # The limit of cuda_malloc_async does not stop its growth. It is only the size that the pool keeps.
    rooms = [] if device.limit is None or device.asynchronous else [device.limit - highest]
    free = device.card.reading.free if device.card and device.card.reading else None
    if free is not None:
        pool = device.reading.pool if device.reading else None
        if pool is not None:
            rooms.append(free + max(0, pool - highest))
        elif not rooms:
            rooms.append(free)
    return min(rooms, default=None)


WHY_IT_LEAKS = (
    "It may be intended, such as a cache that fills. The usual reasons: losses, outputs or metrics kept in a list as "
    "tensors; a tf.function that is traced again and again, because of Python numbers or changing shapes; variables or "
    "models made in a loop; a persistent tape that is never deleted."
)


def holding(group: Alike) -> str:
    """Return what tensors that are held alike hold: ``690 tensors of 1.0 MiB in losses hold 690.0 MiB.``"""
    tensors = counted(group.count, "tensor")
    if group.shape is not None:
        tensors += f" of {format_bytes(group.bytes // group.count)}"
    if group.holder:
        tensors += f" in {group.holder}"
    elif group.shape is not None:
        tensors += f", each {tensor_text(group.shape, group.dtype)},"
    return f"{tensors} hold {format_bytes(group.bytes)}."


def kept_by_windows(grown: Grown | None) -> str:
    """Return which allocations grow from window to window; empty if none is known to grow."""
    if grown is None:
        return ""
    shape = "" if grown.shape is None else f", each {tensor_text(list(grown.shape), grown.dtype)}"
    name = grown.operation.rpartition("PartitionedCall/")[2]
    by = f"operation {name}" if name else "an operation without a name"
    layer = f" of layer {grown.layer}" if grown.layer else ""
    line = f" ({line_of(Callsite(grown.line.file, grown.line.line, grown.line.code))})" if grown.line else ""
    tensors = f"{counted(grown.count, 'tensor')} of {format_bytes(grown.each)}{shape}"
    freed = "it was not freed" if grown.count == 1 else "none was freed"
    text = f"In {spoken(grown.span_s)}, {by}{layer}{line} made {tensors}, and {freed}."
    return f"{text} Python holds them as {grown.python_name}." if grown.python_name else text


def keep_less(holder: Alike | None) -> tuple[str, ...]:
    """Return lines of code that store less than the tensors of *holder*, which may be a list or a dict."""
    named = holder.holder if holder and holder.holder else ""
    where = f" in {named}" if all(part.isidentifier() for part in named.split(".")) else ""
    if scalars(holder):
        return (f"float(loss)  # store this number{where}; the tensor's memory goes back to the pool",)
    return (f"tensor.numpy()  # store this{where}; it lies in the host's memory, not in the pool",)
