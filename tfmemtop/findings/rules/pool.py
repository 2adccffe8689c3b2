"""The rules about how much TensorFlow's pool holds, how much of that it needs, and a limit that hardly fits it."""

from collections.abc import Iterator

from tfmemtop.events.machine import DeviceKind
from tfmemtop.findings.cause import Key
from tfmemtop.findings.finding import DeviceFinding, Said, Severity
from tfmemtop.findings.names import place_name
from tfmemtop.findings.remedy import GROWTH, Action, Remedy, raise_limit
from tfmemtop.findings.rules import rule
from tfmemtop.findings.run_devices import RunDevice, run_devices
from tfmemtop.state import State
from tfmemtop.state.account import USUAL_CONTEXT
from tfmemtop.state.anatomy import waited
from tfmemtop.units import MIB, format_bytes

WHOLE_CARD = 0.75
"""Share of a card. A pool that is reserved at once and at least this large counts as the whole card. TensorFlow takes
0.93 to 0.99."""

WORTH_TELLING = 512 * MIB
"""Bytes. Less than this, idle in a pool, matters little on today's cards."""

IDLE_SHARE = 0.4

KEPT = "Only the end of the process frees it; del, gc.collect and tf.keras.backend.clear_session do not."


class WholeCard(DeviceFinding, frozen=True):
    """Growth is off and no limit is set: TensorFlow took ``held`` bytes of the card's ``whole`` at once.

    ``in_use`` and ``peak`` are ``None`` where they are not known; ``ended`` if these are the process's last figures.
    """

    key = Key.RESERVED

    held: int
    whole: int
    in_use: int | None
    peak: int | None
    ended: bool

    @property
    def severity(self) -> Severity:
        mostly_idle = self.peak is not None and self.peak < self.held / 2
        return Severity.WARNING if mostly_idle else Severity.INFO

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        return Action.GROWTH_ON, Action.SET_LIMIT

    @property
    def said(self) -> Said:
        used = "How much is in use is not known."
        if self.peak is not None:  # what is in use at the end has been freed in part
            now = "" if self.ended or self.in_use is None else f"{format_bytes(self.in_use)} are in use now, "
            used = f"{now or 'At most '}{format_bytes(self.peak)} {'at the peak' if now else 'were in use'}."
        return Said(
            f"{place_name(self.place)}: growth is off, so TensorFlow took {format_bytes(self.held)} of the card's "
            f"{format_bytes(self.whole)} at once.",
            "Without growth and without a limit TensorFlow's pool is as large as what is free on the card when "
            "TensorFlow starts, less a small reserve, whatever the script needs. nvidia-smi then shows a full card, "
            "which says nothing about how full the pool is. With growth the pool starts small and grows. It gives "
            "nothing back before the process ends or an allocation fails.",
            GROWTH,
            used,
        )


@rule(200)
def whole_card_reserved(state: State) -> Iterator[WholeCard]:
    """Find cards that TensorFlow has taken at once, since growth is off and no limit is set."""
    for device in run_devices(state):
        if not takes_everything(device) or device.card is None or device.reading is None:
            continue
        whole, held = device.card.info.total, held_by_pool(device)
        if whole and held is not None and held >= whole * WHOLE_CARD:
            yield WholeCard(
                device.place,
                held=held,
                whole=whole,
                in_use=device.reading.in_use,
                peak=device.peak,
                ended=device.hooked.ended,
            )


def takes_everything(device: RunDevice) -> bool:
    """Return whether the pool of *device* took at once what was free."""
    return device.growth is False and not device.asynchronous and device.asked_limit is None


def held_by_pool(device: RunDevice) -> int | None:
    """Return the bytes of the pool; where it is not read, those that the process holds, less a usual context.

    ``None`` if neither is known.
    """
    if device.reading and device.reading.pool is not None:
        return device.reading.pool
    share = device.card.by_pid.get(device.pid) if device.card else None
    return max(0, share.used - USUAL_CONTEXT) if share and share.used is not None else None


class CachedButIdle(DeviceFinding, frozen=True):
    """``idle`` bytes of a growing ``pool`` were in use once, and have not been for ``span_s`` seconds.

    At most ``recent`` bytes were in use in that time, ``peak`` in the whole run.
    """

    key = Key.RESERVED

    severity = Severity.INFO
    remedies = (Action.SEPARATE_PROCESS,)

    idle: int
    pool: int
    peak: int
    recent: int
    span_s: float
    ended: bool

    @property
    def said(self) -> Said:
        are = "were cached but idle at the end" if self.ended else "are cached but idle"
        return Said(
            f"{place_name(self.place)}: {format_bytes(self.idle)} of the pool's {format_bytes(self.pool)} {are}.",
            f"The script had {format_bytes(self.peak)} in use at its peak, and at most {format_bytes(self.recent)} "
            "lately. A deleted tensor gives its memory back to the pool, not to the card: the next tensors reuse it, "
            f"other processes do not get it. {KEPT} With a limit below the peak, the phase that "
            "reaches the peak would run out of memory.",
            (
                "import multiprocessing",
                "",
                "# in place of prepare(): all its memory goes back when the process ends",
                'phase = multiprocessing.get_context("spawn").Process(target=prepare)',
                "phase.start()",
                "phase.join()",
            ),
            f"Nothing has used this memory for {self.span_s:.0f} s.",
        )


@rule(270)
def cached_but_idle(state: State) -> Iterator[CachedButIdle]:
    """Find growing pools of which a large part was in use once, and has not been for a while."""
    for device in run_devices(state):
        reading, trend, peak = device.reading, device.trend, device.peak
        if not device.growth or device.asynchronous or reading is None or reading.pool is None or peak is None:
            continue
        if trend is None or not trend.long.windows or waited(device.hooked, trend.end) is not None:
            continue  # while a request finds no room, what is cached is no use to it, but not idle
        # A long run has long phases: memory for validation between epochs is not idle.
        begin = trend.long.windows[0].start
        span_s = min(60.0, max(5.0, (trend.end - begin) / 4))
        recent = trend.highest(trend.end - span_s)
        if trend.end - begin < span_s or recent is None:
            continue
        idle = reading.pool - recent
        if idle >= max(WORTH_TELLING, reading.pool * IDLE_SHARE) and peak - recent >= idle / 2:
            yield CachedButIdle(
                device.place,
                idle=idle,
                pool=reading.pool,
                peak=peak,
                recent=recent,
                span_s=span_s,
                ended=device.hooked.ended,
            )


JUST_ABOVE = 0.95
"""Peak divided by limit. BFC rounds sizes and splits chunks, so a pool is rarely filled that far by chance."""


class TightLimit(DeviceFinding, frozen=True):
    """The peak in use comes close to the limit; bytes."""

    severity = Severity.INFO
    limit: int
    peak: int

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        return raise_limit(self.limit, on_cpu=self.place.on_cpu), Action.FIND_LIMIT

    @property
    def said(self) -> Said:
        return Said(
            f"{place_name(self.place)}: the peak in use is {self.peak / self.limit:.0%} of the limit.",
            "What fits depends on the order of allocations too: free memory in pieces does not add up. A try finds how "
            "much more is enough. Larger batches or another model need another limit.",
            figures=f"The peak was {format_bytes(self.peak)}, the limit is {format_bytes(self.limit)}.",
        )


@rule(260)
def tight_limit(state: State) -> Iterator[TightLimit]:
    """Find devices where the peak comes close to a limit that the user or the script set."""
    for device in [*run_devices(state), *run_devices(state, DeviceKind.CPU)]:
        limit, peak = device.asked_limit, device.peak
        if limit is None or not peak or device.asynchronous or device.hooked.out_of_memory:
            continue
        if limit * JUST_ABOVE <= peak:
            yield TightLimit(device.place, limit=limit, peak=peak)
