"""The rule for memory in use that keeps rising."""

from collections.abc import Iterable, Iterator
from math import ceil

from tfmemtop.events import Event
from tfmemtop.events.machine import DeviceKind
from tfmemtop.findings.cause import Cause, Key
from tfmemtop.findings.finding import DeviceFinding, Said, joined
from tfmemtop.findings.names import Callsite, holder_name, line_of, place_name, tensor_text
from tfmemtop.findings.remedy import Action, Remedy
from tfmemtop.findings.rise_causes import rising
from tfmemtop.findings.rising import BEGINS, EPOCHS, Rise, goes_on, has_stopped, may_rise, merged, rises, settled, slope
from tfmemtop.findings.rules import rule
from tfmemtop.findings.rules.host_growth import host_rises
from tfmemtop.findings.rules.out_of_memory import failures
from tfmemtop.findings.run_devices import RunDevice, hooked_of_run, run_devices
from tfmemtop.findings.scene import MANY
from tfmemtop.state import State
from tfmemtop.state.fold import apply
from tfmemtop.state.growing import Grown, growing
from tfmemtop.state.history import LONG_S, Trend, UseWindow
from tfmemtop.state.lookup import once_per_revision
from tfmemtop.state.model import Hooked
from tfmemtop.state.windows import recorded
from tfmemtop.units import MIB, counted, format_bytes, rough, rough_time, spoken

LEAK_WINDOWS = 18
"""Windows of ten seconds. A slow rise is judged after three minutes."""

EARLY_WINDOWS, EARLY_SHARE = 20, 0.05
"""Windows of a second, and a share of the memory in use. A rise of so much is told after twenty seconds."""

BRIDGED = 3  # seconds

LEAK_LOOKED_AT = 90
EPOCHS_SEEN = 12
"""How many stretches of some windows an early rise needs that comes once an epoch."""

EARLY = (
    *((1, EARLY_WINDOWS, newest) for newest in (0, 2 * EARLY_WINDOWS, EARLY_WINDOWS)),
    *((times, EPOCHS_SEEN, newest) for times in EPOCHS for newest in (0, EPOCHS_SEEN)),
)
"""In what an early rise is looked for: how many windows are merged, and of these the least and the newest (0: all)."""

LEAK_AT_LEAST = 32 * MIB
"""Bytes. A smaller rise is not told: it matters little, and may end by itself."""

LEAK_SHARE = 0.003
"""The same, as a share of what is in use: where much is in use, so small a part of it also varies without a leak."""


class Leak(DeviceFinding, frozen=True):
    """Memory in use has been rising by ``rise`` bytes a second for ``span_s`` seconds, or did so until it ``ended``.

    The lowest use in equal stretches of time (``windows`` of them) rose from the first of ``lows`` to the second. The
    highest use rose in the same way, by ``highs``. ``room`` is the bytes that can still be used, ``None`` where that is
    not known. ``rate`` is in ``unit`` (``steps`` or ``calls``) a second, ``None`` where they are not counted, or few.
    ``by`` is who keeps the memory, ``None`` where nobody was found; ``grown`` are the allocations that make up most of
    the rise, according to the windows in which they were recorded.
    """

    rise: float
    span_s: float
    windows: int
    lows: tuple[int, int]
    highs: tuple[int, int]
    room: int | None
    rate: float | None
    unit: str
    ended: bool
    by: Cause | None = None
    grown: Grown | None = None

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        return self.by.remedies if self.by else (Action.SHOW_PROCESS,)

    @property
    def each(self) -> int | None:
        """The bytes by which memory rises in a step, or a call; ``None`` where these are not counted."""
        return int(self.rise / self.rate) if self.rate else None

    @property
    def left_s(self) -> float | None:
        """Seconds until the memory is used up at this pace; ``None`` where that is not known, or less than one."""
        return self.room / self.rise if self.room is not None and self.room > self.rise else None

    @property
    def left_steps(self) -> float | None:
        """Steps, or calls, until the memory is used up; ``None`` where that or their rate is not known."""
        return self.left_s * self.rate if self.left_s is not None and self.rate else None

    @property
    def cause(self) -> Cause:
        """Who keeps the memory; where nobody was found, that it grows."""
        if self.by is not None:
            return self.by
        text, size = self._rising, int(self.rise * self.span_s)
        return Cause(Key.GROWTH, text, bytes=size, remedies=self.remedies, evidence=(kept_by_windows(self.grown),))

    @property
    def _rising(self) -> str:
        pace = f"{format_bytes(int(self.rise * 60))} a minute"
        if self.each is not None:
            pace = f"{format_bytes(self.each)} a {self.unit.rstrip('s')}"
        made = f", made by {_made_by(self.grown)}" if self.grown and self.grown.operation else ""
        return f"Memory in use {'rose' if self.ended else 'is rising'} steadily, by {pace}{made}."

    @property
    def said(self) -> Said:
        rose = "for" if self.ended else "in the last"
        figures = f"It rose {rose} {spoken(max(1.0, self.span_s))}; even its lowest points rose."
        if self.left_s is not None:
            steps = f" ({rough(self.left_steps)} {self.unit})" if self.left_steps is not None else ""
            full = "At that pace it would have been full" if self.ended else "At this pace the memory is full"
            figures += f" {full} in {rough_time(self.left_s)}{steps}."
        figures = joined(figures, kept_by_windows(self.grown))
        headline = f"{place_name(self.place)}: {self._rising[0].lower()}{self._rising[1:]}"
        code: tuple[str, ...] = ()
        if self.by is not None:
            headline, figures = joined(headline, self.by.text), joined(figures, *self.by.evidence)
            code = self.by.code
        return Said(
            headline,
            f"In {self.windows} equal stretches of time the lowest use rose from {format_bytes(self.lows[0])} to "
            f"{format_bytes(self.lows[1])}, the highest from {format_bytes(self.highs[0])} to "
            f"{format_bytes(self.highs[1])}. A cache that fills rises, too.",
            code,
            figures,
        )


@rule(140)
def leak(state: State) -> Iterator[Leak]:
    """Find devices whose memory in use keeps rising, at its low points and at its high ones."""
    yield from _steady(state).values()


@once_per_revision
def _steady(state: State) -> dict[tuple[int, str], Leak]:
    full = {(failed.anatomy.pid, failed.anatomy.device) for failed in failures(state)}
    devices = [*run_devices(state), *run_devices(state, DeviceKind.CPU)]
    found = {(one.pid, one.name): _rising(state, one) for one in devices if (one.pid, one.name) not in full}
    return {pool: leak for pool, leak in found.items() if leak is not None}


def leaks(state: State) -> set[tuple[int, str | None]]:
    """Return, by process and device, the pools whose memory keeps rising, or did so until they were full."""
    filled = {(one.anatomy.pid, one.anatomy.device) for one in failures(state) if one.cause.keeps_growing}
    return {*_steady(state), *rising(state), *filled}


def _rising(state: State, device: RunDevice) -> Leak | None:
    if device.trend is None or device.reading is None or device.reading.in_use is None:
        return None
    windows = next(filter(_rise_steadily, _stretches(device.trend)), None) or _early(
        device.trend, ended=device.hooked.ended
    )
    if windows is None:
        return None
    seconds = settled(_by_second(device.trend, windows))
    if not device.hooked.ended and (has_stopped(seconds, device.limit) or not goes_on(seconds)):
        return None
    lows, highs = [window.low for window in windows], [window.high for window in windows]
    span_s = windows[-1].start - windows[0].start
    rise = min(slope(windows, lows), slope(windows, highs))
    if rise * span_s < max(LEAK_AT_LEAST, lows[-1] * LEAK_SHARE):
        return None
    # The earlier half may contain some of a phase before, with steps that keep nothing.
    half, end = windows[len(windows) // 2].start, windows[-1].start
    steps, unit = device.hooked.steps.made(half, end)
    grown = next((one for one in growing(device.hooked, device.name)[:1] if one.rate >= rise / 2), None)
    return Leak(
        device.place,
        rise=rise,
        span_s=span_s,
        windows=len(windows),
        lows=(lows[0], lows[-1]),
        highs=(highs[0], highs[-1]),
        room=_room(device, highs[-1]),
        rate=steps / (end - half) if steps >= MANY else None,
        unit=unit,
        ended=device.hooked.ended,
        by=rising(state).get((device.pid, device.name)),
        grown=grown,
    )


def _stretches(trend: Trend) -> Iterator[list[UseWindow]]:
    """Yield the stretches of time in which to look for a steady rise.

    First comes the last quarter of an hour, in windows of ten seconds. Such a rise has often begun with a jump, when
    the model was made, so later parts of that quarter come next. Then come longer times in longer windows.
    """
    windows, whole = trend.long.windows[:-1], trend.whole.windows[:-1]  # the newest is not complete
    recent = windows[-LEAK_LOOKED_AT:]
    for share in BEGINS:
        yield recent[ceil(len(recent) * share) :]
    longer = [(whole, times) for times in (1, *EPOCHS)] if trend.whole.width_s >= LONG_S else []
    for those, times in [*((windows, times) for times in EPOCHS), *longer]:
        if may_rise(those, times):
            yield merged(those, times)


def _early(trend: Trend, *, ended: bool) -> list[UseWindow] | None:
    """Return the last twenty seconds or more, if a good part of the memory in use was added in them steadily.

    Of a rise that comes once an epoch, twelve stretches of some seconds are enough. What rose until some seconds ago,
    and has not become much less, may only not have come to its next epoch, unless the process has *ended*.
    """
    now = trend.short.windows
    for times, least, most in EARLY:
        for windows in (now[: -1 - ago] for ago in range(1 if ended else max(times, BRIDGED))):
            part = windows[-most * times :]
            since = merged(part, times) if may_rise(part, times) else []
            if _rise_steadily(since, least) and (rose := since[-1].low - since[0].low) >= EARLY_SHARE * since[-1].low:
                return since if ended or now[-1].low >= since[-1].low - rose / 4 else None
    return None


def _by_second(trend: Trend, windows: list[UseWindow]) -> list[UseWindow]:
    """Return the time of *windows* second by second, which shows soon that a rise has ended, if it is known so."""
    since, seconds = windows[0].start, trend.short.windows
    return [one for one in seconds if one.start >= since] if seconds[0].start <= since else windows


def _rise_steadily(windows: list[UseWindow], least: int = LEAK_WINDOWS) -> bool:
    if len(windows) < least or not may_rise(windows):
        return False
    return rises([window.low for window in windows]) and rises([window.high for window in windows])


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


def kept_by_windows(grown: Grown | None) -> str:
    """Return which allocations grow from window to window; empty if none is known to grow."""
    if grown is None:
        return ""
    shape = "" if grown.shape is None else f", each {tensor_text(list(grown.shape), grown.dtype)}"
    tensors = f"{counted(grown.count, 'tensor')} of {format_bytes(grown.each)}{shape}"
    freed = "it was not freed" if grown.count == 1 else "none was freed"
    text = f"In {spoken(grown.span_s)}, {_made_by(grown)} made {tensors}, and {freed}."
    return f"{text} Python holds them as {holder_name(grown.python_name)}." if grown.python_name else text


def _made_by(grown: Grown) -> str:
    name = grown.operation.rpartition("PartitionedCall/")[2]
    by = f"operation {name}" if name else "an operation without a name"
    layer = f" of layer {grown.layer}" if grown.layer else ""
    line = f" ({line_of(Callsite(grown.line.file, grown.line.line, grown.line.code))})" if grown.line else ""
    return f"{by}{layer}{line}"


AGAIN_S = 20.0
"""Seconds between two windows of one process that serve findings. Two windows are needed to show what grows."""

_LOOK_S = 60.0
"""Seconds between two looks at the tensors of one process whose memory rises, unless it has doubled since, or host
memory has risen by half as much again. A look costs a tenth of a second."""


def windows_wanted(state: State) -> list[int]:
    """Return the numbers of the processes that should record a window, or look for who holds tensors and arrays.

    Their memory rises, and no windows show what grows, or nobody has looked for its holder lately.
    """
    of_host = {one.pid: one.rise for one in host_rises(state) if not (one.ended or one.holder or one.retraced)}
    rise = set(of_host)
    rise.update(pid for pid, _ in rising(state))  # what is told as rising, though it does so in a few large steps
    unseen = (
        pid
        for pid, hooked in hooked_of_run(state)
        if pid in rise and not hooked.ended and _long_unseen(state, hooked, of_host.get(pid))
    )
    leaking = {finding.place: finding for finding in leak(state) if not finding.ended}
    devices = [*run_devices(state), *run_devices(state, DeviceKind.CPU)]
    wanted = (
        device.pid
        for device in devices
        if device.place in leaking and not device.hooked.ended and _unexplained(state, device, leaking[device.place])
    )
    return list(dict.fromkeys((*wanted, *unseen)))


def _long_unseen(state: State, hooked: Hooked, of_host: Rise | None = None) -> bool:
    look = hooked.look
    if look is None or state.now - look.t > _LOOK_S or any(_doubled(one, look.t) for one in hooked.trends.values()):
        return True
    before = [window.low for window in hooked.host.windows if window.start <= look.t]
    return of_host is not None and bool(before) and (of_host.last - before[-1]) * 2 >= before[-1] - of_host.first


def _doubled(trend: Trend, since: float) -> bool:
    """Return whether twice as much is in use as was at most until *since*."""
    windows = trend.whole.windows
    before = [window.high for window in windows if window.start <= since]
    return bool(before) and windows[-1].low >= 2 * max(before)


def _unexplained(state: State, device: RunDevice, rise: Leak) -> bool:
    windows = device.hooked.windows.get(device.name)
    if _long_unseen(state, device.hooked):
        return True
    if rise.grown is not None or windows is None:
        return False  # without a window of the start, the process cannot record any
    newest = max((window.ended for window in recorded(windows)), default=None)
    return newest is not None and state.now - newest > AGAIN_S


class WindowWishes:
    """Decides from the stream of events when to request windows: for each process at most once in ``AGAIN_S``."""

    def __init__(self) -> None:
        self._state = State()
        self._asked: dict[int, float] = {}  # by process: when its last window was requested, in seconds of the session

    def due(self, events: Iterable[Event]) -> list[int]:
        """Take in *events*, and return the numbers of the processes of which to request a window now."""
        for event in events:
            apply(self._state, event)
        now = self._state.now
        wanted = [pid for pid in windows_wanted(self._state) if now - self._asked.get(pid, float("-inf")) >= AGAIN_S]
        self._asked |= dict.fromkeys(wanted, now)
        return wanted
