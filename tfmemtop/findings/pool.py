"""The rules about how much TensorFlow's pool holds, and how much of that it needs."""

from collections.abc import Iterator
from dataclasses import dataclass

from tfmemtop import events
from tfmemtop.events.device_names import DeviceKind
from tfmemtop.findings.cause import Key
from tfmemtop.findings.finding import DeviceFinding, Question, Said, Severity
from tfmemtop.findings.places import place_name
from tfmemtop.findings.remedy import GROWTH, Action, Remedy
from tfmemtop.findings.run_devices import RunDevice, run_devices
from tfmemtop.state import State
from tfmemtop.state.account import USUAL_CONTEXT
from tfmemtop.units import MIB, format_bytes

WHOLE_CARD = 0.75
"""Share of a card. A pool that is reserved at once and at least this large counts as the whole card. TensorFlow takes
0.93 to 0.99."""

WORTH_TELLING = 512 * MIB
"""Bytes. Less than this, idle in a pool, matters little on today's cards."""

IDLE_SHARE = 0.4
UNNEEDED_SHARE = 0.3
"""Share of the pool. A pool that doubled just before it was enough is at worst half empty; a third is common."""

FILLING_S = 5.0
"""Seconds after a growth in which the pool is not judged: it may soon be filled."""

FRAGMENTED = 0.5
AT_ITS_LIMIT = 0.95
MAP_TOO_OLD_S = 15.0
"""Seconds. An older map is not used. Maps are read only while a person looks at them or a recording is made."""


@dataclass(frozen=True, slots=True)
class WholeCard(DeviceFinding):
    """Growth is off and no limit is set: TensorFlow took ``held`` bytes of the card's ``whole`` at once.

    ``in_use`` and ``peak`` are ``None`` where they are not known; ``ended`` if these are the process's last figures.
    """

    key = Key.RESERVED

    answers = Question.ALL_TAKEN

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
        return Remedy(Action.GROWTH_ON), Remedy(Action.SET_LIMIT)

    @property
    def said(self) -> Said:
        if self.in_use is None or self.peak is None:
            used = "How much is in use is not known."
        else:
            now = "were in use at the end" if self.ended else "are in use now"
            used = f"{format_bytes(self.in_use)} {now}, {format_bytes(self.peak)} at the peak."
        return Said(
            f"{place_name(self.place)}: growth is off, so TensorFlow took {format_bytes(self.held)} of the card's "
            f"{format_bytes(self.whole)} at once.",
            "Without growth and without a limit TensorFlow's pool is as large as what is free on the card when "
            "TensorFlow starts, less a small reserve, whatever the script needs. nvidia-smi then shows a full card, "
            "which says nothing about how full the pool is. It costs nothing while nobody else needs the card. With "
            "growth the pool starts small and grows. It gives nothing back before the process ends or an allocation "
            "fails.",
            GROWTH,
            used,
        )


def whole_card_reserved(state: State) -> Iterator[WholeCard]:
    """Find cards that TensorFlow has taken at once, since growth is off and no limit is set."""
    for device in run_devices(state):
        if not _takes_everything(device) or device.card is None or device.reading is None:
            continue
        whole, held = device.card.info.total, _held(device)
        if whole and held is not None and held >= whole * WHOLE_CARD:
            known = device.reading.in_use is not None and device.peak is not None
            yield WholeCard(
                device.place,
                held=held,
                whole=whole,
                in_use=device.reading.in_use if known else None,
                peak=device.peak,
                ended=device.hooked.ended,
            )


def _takes_everything(device: RunDevice) -> bool:
    return device.growth is False and not device.asynchronous and device.asked_limit is None


def _held(device: RunDevice) -> int | None:
    """Return the bytes of the pool; where it is not read, those that the process holds, less a usual context.

    ``None`` if neither is known.
    """
    if device.reading and device.reading.pool is not None:
        return device.reading.pool
    share = device.card.by_pid.get(device.pid) if device.card else None
    return max(0, share.used - USUAL_CONTEXT) if share and share.used is not None else None


@dataclass(frozen=True, slots=True)
class CachedButIdle(DeviceFinding):
    """``idle`` bytes of a growing ``pool`` were in use once, and have not been for ``span_s`` seconds.

    At most ``recent`` bytes were in use in that time, ``peak`` in the whole run.
    """

    key = Key.RESERVED

    answers = Question.FULL_NOT_USED
    severity = Severity.INFO
    remedies = (Remedy(Action.SEPARATE_PROCESS),)

    idle: int
    pool: int
    peak: int
    recent: int
    span_s: float
    ended: bool

    @property
    def said(self) -> Said:
        are, keeps = "are cached but idle", "keeps it until the process ends"
        if self.ended:
            are, keeps = "were cached but idle at the end", "kept it until the process ended"
        return Said(
            f"{place_name(self.place)}: {format_bytes(self.idle)} of the pool's {format_bytes(self.pool)} {are}.",
            f"The script had {format_bytes(self.peak)} in use at its peak, and at most {format_bytes(self.recent)} "
            "lately. A deleted tensor gives its memory back to the pool, not to the card: the next tensors reuse it "
            "at once, other processes cannot have it. With growth the pool grows as needed; it never shrinks. "
            "Neither del, gc.collect nor tf.keras.backend.clear_session changes that; only the end of the process "
            "does. A later phase, such as the next validation, may need the memory again: a limit below the peak "
            "would end it with an out-of-memory error.",
            (
                "import multiprocessing",
                "",
                "# in place of prepare(): all its memory goes back when the process ends",
                'phase = multiprocessing.get_context("spawn").Process(target=prepare)',
                "phase.start()",
                "phase.join()",
            ),
            f"Nothing has used this memory for {self.span_s:.0f} s. TensorFlow {keeps}.",
        )


def cached_but_idle(state: State) -> Iterator[CachedButIdle]:
    """Find growing pools of which a large part was in use once, and has not been for a while."""
    for device in run_devices(state):
        reading, trend, peak = device.reading, device.trend, device.peak
        if not _grows(device) or reading is None or reading.pool is None or peak is None:
            continue
        if trend is None or not trend.long:
            continue
        # A long run has long phases: memory for validation between epochs is not idle.
        span_s = min(60.0, max(5.0, (trend.end - trend.long[0].start) / 4))
        recent = trend.highest(span_s)
        if recent is None:
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


def _grows(device: RunDevice) -> bool:
    return bool(device.growth) and not device.asynchronous


@dataclass(frozen=True, slots=True)
class GrownBeyondNeed(DeviceFinding):
    """A growing ``pool`` holds ``surplus`` bytes more than were ever in use at once.

    ``step`` is the size of the region that explains the surplus, ``None`` where no single region is known to.
    """

    key = Key.RESERVED

    answers = Question.GROWTH
    severity = Severity.INFO
    remedies = (Remedy(Action.FIND_LIMIT),)

    pool: int
    surplus: int
    step: int | None
    ended: bool

    @property
    def said(self) -> Said:
        holds = "held" if self.ended else "holds"
        why = "The pool's regions double in size, which may be the reason."
        if self.step is not None:
            why = f"The pool's regions double in size; the last one was {format_bytes(self.step)}."
        return Said(
            f"{place_name(self.place)}: the pool {holds} {format_bytes(self.pool)}, {format_bytes(self.surplus)} more "
            "than was ever in use at once.",
            "BFC, TensorFlow's allocator, takes memory from CUDA in regions, each twice as large as the one before "
            "and at least as large as what was asked for. So the pool may become nearly twice as large as needed. A "
            "large tensor that fits into no free chunk adds a region of its own. A limit stops the last doubling "
            "early. How much lower than the pool it may be depends on the order of allocations, so it has to be "
            "tried.",
            figures=why,
        )


def grown_beyond_need(state: State) -> Iterator[GrownBeyondNeed]:
    """Find growing pools that hold far more than was ever in use at one time."""
    for device in run_devices(state):
        reading, peak = device.reading, device.peak
        if not _grows(device) or reading is None or reading.pool is None or peak is None:
            continue
        surplus = reading.pool - peak
        growth = _last_growth(device)
        just_grown = growth is not None and reading.t - growth.at < FILLING_S
        if surplus < max(WORTH_TELLING, reading.pool * UNNEEDED_SHARE) or just_grown:
            continue
        step = growth.after - growth.before if growth else 0
        yield GrownBeyondNeed(
            device.place,
            pool=reading.pool,
            surplus=surplus,
            step=step if step >= surplus else None,
            ended=device.hooked.ended,
        )


def _last_growth(device: RunDevice) -> events.PoolGrowth | None:
    pool = device.hooked.pools.get(device.name)
    return next((g for g in reversed(pool.growths) if g.after > g.before), None) if pool else None


@dataclass(frozen=True, slots=True)
class FragmentedPool(DeviceFinding):
    """The pool is at its limit, and its ``free`` bytes lie in chunks of at most ``largest_free``.

    Another tensor of ``biggest`` bytes, as large as the largest in use, would not fit. ``fragmentation`` is the share
    of the free memory outside the largest free chunk. ``failed`` if an allocation of the process has failed.
    """

    key = Key.FRAGMENTATION

    answers = Question.FULL_NOT_USED

    free: int
    largest_free: int
    biggest: int
    fragmentation: float
    chunks_free: int
    chunks_in_use: int
    failed: bool

    @property
    def severity(self) -> Severity:
        # Until an allocation has failed, it is possible that the script never makes so large a tensor again.
        return Severity.WARNING if self.failed else Severity.INFO

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        if self.place.on_cpu:
            return (Remedy(Action.ENLARGE_CPU_POOL),)
        return Remedy(Action.USE_CUDA_ALLOCATOR), Remedy(Action.RAISE_LIMIT)

    @property
    def said(self) -> Said:
        on_gpu = not self.place.on_cpu
        of_gpu = (
            "the allocator cuda_malloc_async, which joins free chunks; a pool that is taken in one region (growth "
            "off, or a limit), since regions never merge; "
            if on_gpu
            else ""
        )
        return Said(
            f"{place_name(self.place)}: {format_bytes(self.free)} of the pool are free, but in chunks of at most "
            f"{format_bytes(self.largest_free)}.",
            f"{self.fragmentation:.0%} of the free memory lie outside the largest free chunk, in {self.chunks_free} "
            f"free chunks among {self.chunks_in_use} in use. A tensor needs one chunk. What helps: {of_gpu}shapes "
            "that stay the same from step to step, as by padding or a fixed batch size; making long-lived tensors "
            "(weights, optimizer slots) first.",
            ("export TF_GPU_ALLOCATOR=cuda_malloc_async",) if on_gpu else (),
            f"The pool is at its limit, so another tensor of {format_bytes(self.biggest)}, the size of the largest in "
            "use, would not fit. Whether the script will ask for one is not known.",
        )


def fragmented(state: State) -> Iterator[FragmentedPool]:
    """Find pools that cannot grow, and whose free memory lies in pieces smaller than the script's largest tensor."""
    for device in [*run_devices(state), *run_devices(state, DeviceKind.CPU)]:
        found = _recent_map(device)
        if found is None or device.limit is None:
            continue
        free = found.pool - found.in_use
        biggest = max(chunk.requested for chunk in found.biggest)
        stuck = found.pool >= device.limit * AT_ITS_LIMIT
        too_small = found.largest_free < biggest <= free
        if stuck and too_small and found.fragmentation >= FRAGMENTED:
            yield FragmentedPool(
                device.place,
                free=free,
                largest_free=found.largest_free,
                biggest=biggest,
                fragmentation=found.fragmentation,
                chunks_free=found.chunks - found.chunks_in_use,
                chunks_in_use=found.chunks_in_use,
                failed=bool(device.hooked.out_of_memory),
            )


def _recent_map(device: RunDevice) -> events.MemoryMap | None:
    """Return the newest map of the pool; ``None`` if it is too old, or does not contain the largest chunks."""
    pool = device.hooked.pools.get(device.name)
    found = pool.map if pool else None
    if found is None or found.is_missing or not found.biggest or device.reading is None:
        return None
    return None if device.reading.t - found.t > MAP_TOO_OLD_S else found
