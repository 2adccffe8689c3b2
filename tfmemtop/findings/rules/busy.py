"""The rule for cards whose memory is full while they compute little."""

from collections.abc import Iterator, Sequence

from tfmemtop.findings.cause import Key
from tfmemtop.findings.finding import DeviceFinding, Said, Severity
from tfmemtop.findings.names import place_name
from tfmemtop.findings.remedy import Action, Remedy
from tfmemtop.findings.rules import rule
from tfmemtop.findings.rules.pool import held_by_pool, takes_everything
from tfmemtop.findings.run_devices import RunDevice, run_devices
from tfmemtop.state import State
from tfmemtop.state.lookup import process_total
from tfmemtop.state.model import DeviceState
from tfmemtop.units import format_bytes

FULL_SHARE = 0.9
"""Share of a card. From this on it counts as full."""
IDLE_PERCENT = 15.0
WINDOW_S = 30.0
LEAST_READINGS = 20
STARTING_S = 15.0
"""Seconds from making the devices that do not count: TensorFlow first loads libraries and tries kernels."""

BUSY_PERCENT = 80.0
"""Percent of one core, summed over the script's processes. Python that waits for the GPU uses much less."""


class FullCard(DeviceFinding, frozen=True):
    """``used`` bytes of the card's ``whole`` are taken, and it was busy for ``percent`` of the last ``span_s``."""

    key = Key.RESERVED

    used: int
    whole: int
    percent: float
    span_s: float

    @property
    def taken(self) -> str:
        """What is taken, and over which time the utilisation was averaged."""
        return (
            f"{format_bytes(self.used)} of {format_bytes(self.whole)} are taken; the average is over "
            f"{self.span_s:.0f} s."
        )


class FullButIdle(FullCard, frozen=True):
    """The card is full and idle.

    The script kept ``cores`` busy meanwhile; ``None`` where that is not known. ``reserved`` if growth is off, so that
    other processes cannot use the memory that this one does not need.
    """

    cores: float | None
    reserved: bool

    @property
    def waits_for_host(self) -> bool:
        """Whether the script computes on the CPU while the GPU is idle."""
        return self.cores is not None and self.cores * 100 >= BUSY_PERCENT

    @property
    def severity(self) -> Severity:
        return Severity.WARNING if self.waits_for_host else Severity.INFO

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        if self.waits_for_host:
            return (Action.FEED_FASTER,)
        return (Action.GROWTH_ON,) if self.reserved else ()

    @property
    def said(self) -> Said:
        idle = f"{place_name(self.place)} is full but idle: its utilisation averaged {self.percent:.0f}%"
        counted = (
            "Memory and work are counted separately: what TensorFlow has reserved or cached shows as used, whether or "
            "not anything is computed."
        )
        if self.waits_for_host and self.cores is not None:
            return Said(
                f"{idle}, while the script kept {self.cores:.1f} cores busy.",
                f"{counted} The script worked on the CPU meanwhile: it read, decoded or augmented its input, traced, "
                "saved, or ran plain Python. If it was the input: prefetch, read in parallel, or use larger batches.",
                (
                    "dataset = dataset.map(prepare, num_parallel_calls=tf.data.AUTOTUNE)",
                    "dataset = dataset.prefetch(tf.data.AUTOTUNE)",
                ),
                self.taken,
            )
        others = " Growth would leave others what the script does not need." if self.reserved else ""
        return Said(f"{idle}.", f"{counted} The host was not busy either.{others}", figures=self.taken)


class ReservedUnused(FullCard, frozen=True):
    """The card is full and idle, and GPU ``working`` of the same process is busy for ``working_percent``."""

    severity = Severity.INFO
    remedies = (Action.HIDE_UNUSED_GPUS,)

    working: int
    working_percent: float

    @property
    def said(self) -> Said:
        return Said(
            f"{place_name(self.place)} is full but idle, while the same process computes on GPU {self.working}.",
            "TensorFlow makes a device of every visible GPU, and without growth reserves the memory of each. It "
            "computes on the first, unless the script says otherwise (tf.device, tf.distribute).",
            (
                'gpus = tf.config.list_physical_devices("GPU")',
                "# before anything else that touches the GPUs:",
                'tf.config.set_visible_devices(gpus[:1], "GPU")',
            ),
            f"{self.taken} The utilisation was {self.percent:.0f}% here and {self.working_percent:.0f}% on GPU "
            f"{self.working}.",
        )


@rule(220)
def full_but_idle(state: State) -> Iterator[FullButIdle | ReservedUnused]:
    """Find cards whose memory is taken, and which have computed little for half a minute."""
    run = state.run
    if run is None or not run.going:
        return
    told = set()
    for device in run_devices(state):
        card = device.card
        if card is None or device.hooked.ended or card.info.index in told or device.effective is None:
            continue
        since = max(state.now - WINDOW_S, device.effective.t + STARTING_S)
        used, whole, percent = _used_if_full(card), card.info.total, _idle_percent(card, since)
        if used is None or whole is None or percent is None or _of_others(state, card, used):
            continue
        told.add(card.info.index)
        figures = device.place, used, whole, percent, state.now - since
        if busy := _working(state, device, since):
            yield ReservedUnused(*figures, *busy)
            continue
        host = [cpu for t, cpu in run.busy if t >= since]
        cores = _mean(host) / 100 if host else None
        yield FullButIdle(*figures, cores, takes_everything(device) and (held_by_pool(device) or 0) > used / 2)


def _used_if_full(card: DeviceState) -> int | None:
    """Return the bytes used of *card*; ``None`` if it is not full, or if that is not known."""
    whole, used = card.info.total, card.reading.used if card.reading else None
    return used if whole is not None and used is not None and used >= whole * FULL_SHARE else None


def _idle_percent(card: DeviceState, since: float) -> float | None:
    """Return how busy *card* was, in percent; ``None`` if it was not idle, or if there are too few readings."""
    readings = _busy(card, since)
    if len(readings) < LEAST_READINGS:
        return None
    percent = _mean(readings)
    return percent if percent < IDLE_PERCENT else None


def _busy(card: DeviceState, since: float) -> list[int]:
    """Return how busy *card* was at each reading from *since* on, in percent."""
    return [percent for t, percent in card.busy if t >= since]


def _mean(values: Sequence[float]) -> float:
    # statistics.fmean would load half a megabyte of modules into the screen.
    return sum(values) / len(values)


def _of_others(state: State, card: DeviceState, used: int) -> bool:
    """Return whether other processes fill *card*. How busy it is then says nothing about the run."""
    mine = process_total(state, card)
    if mine is not None:
        return mine < used / 2
    before = state.run.before.get(card.info.index) if state.run else None
    return before is not None and before[0] > used / 2


def _working(state: State, idle: RunDevice, since: float) -> tuple[int, float] | None:
    """Return another GPU of the same process that is not idle: its NVML index, and how busy it was, in percent."""
    for device in run_devices(state):
        if device.pid != idle.pid or device.card is None or device.card is idle.card:
            continue
        busy = _busy(device.card, since)
        if busy and (mean := _mean(busy)) >= IDLE_PERCENT:
            return device.card.info.index, mean
    return None
