"""The memory of each GPU and of the CPU's pool over time, collected while a recording is folded. Pure."""

from itertools import accumulate
from typing import NamedTuple

from tfmemtop.events import Allocator, DeviceReading, Event, Framework
from tfmemtop.events.machine import is_cpu, is_pinned
from tfmemtop.frameworks import FrameworkName
from tfmemtop.reports.shared.data import Known, PageLayer, PagePlace
from tfmemtop.series import Series
from tfmemtop.state import State
from tfmemtop.state.account import context_size
from tfmemtop.state.lookup import (
    allocators_on,
    card_of,
    card_pools,
    cpu_pool_readings,
    device_of,
    frameworks_of,
    living_hooked,
    pool_use,
    process_total,
)
from tfmemtop.state.model import DeviceState

CPU = "cpu"
"""The key of the CPU's pool; that of a GPU is its NVML index."""

WIDTH_S, COLUMNS = 0.25, 1500
"""The seconds of the finest column, and the most columns of a place."""

_LAYERS = {
    "in_use": "in use",
    "cached": "cached",
    **{framework.value: framework.title for framework in FrameworkName},
    "context": "CUDA context",
    "outside": "outside the pool",
    "others": "other processes",
}
_FRAMEWORKS = frozenset(framework.value for framework in FrameworkName)
_OF_THE_DRIVER = frozenset({"context", "outside"})
"""The layers that are known only from the driver's figure of the run's processes."""


_ONE_MOMENT_S = 0.5
"""The driver's figure and readings of pools that are not further apart may be of one moment."""


class _Sample(NamedTuple):
    """The upper end of each layer in bytes, and the layers of which it is not known what they have."""

    ends: tuple[int, ...]
    unknown: frozenset[str] = frozenset()


def _highest(one: _Sample, other: _Sample) -> _Sample:
    return _Sample(tuple(map(max, one.ends, other.ends)), one.unknown & other.unknown)


class _Course:
    """The samples of one place, of which the highest of each stretch stay: fine ones of the newest minutes as well."""

    def __init__(self, columns: int) -> None:
        self._whole = Series(_highest, WIDTH_S, columns)
        self._newest = Series(_highest, WIDTH_S, columns // 3, rolling=True)

    def add(self, t: float, sample: _Sample) -> None:
        self._whole.add(t, sample)
        self._newest.add(t, sample)

    def columns(self) -> list[tuple[float, _Sample]]:
        """Return the beginning of each stretch and its sample; it holds until the next one."""
        whole, newest = (
            [(number * series.width_s, one) for number, one in zip(series.numbers, series.windows, strict=True)]
            for series in (self._whole, self._newest)
        )
        return [one for one in whole if one[0] < newest[0][0]] + newest if newest else []


class _Card(_Course):
    """A GPU. The driver is read less often than the pools.

    What the run's processes have beside their pools, and what other processes have, counts from one reading of the
    driver to the next, while the pools change.
    """

    def __init__(self, columns: int) -> None:
        super().__init__(columns)
        self._rest = self._others = self._context = 0
        self._known = False
        self._held: dict[tuple[int, str], int] = {}  # by each pool, as last read
        self._again: set[tuple[int, str]] = set()  # the pools that were read since the driver was
        self._read_at = 0.0

    def driver_read(self, state: State, device: DeviceState, reading: DeviceReading) -> None:
        """Take what the driver says. What it still lists of processes whose pools have ended is what they had."""
        total, held = process_total(state, device), _held(state, device)
        pools = sum(held.values())
        if self._held and not held and total:
            return
        self._known = total is not None and (total > 0 or not pools)
        self._rest = max(0, (total or 0) - pools)
        self._others = max(0, (reading.used or 0) - max(total or 0, pools))
        index = device.info.index
        self._context = sum(context_size(one, index)[0] for one in living_hooked(state) if index in one.contexts)
        self._held, self._again, self._read_at = held, set(), state.now
        self.add(state.now, self._sample(state, device, 0))

    def pool_read(self, state: State, device: DeviceState, reading: Allocator | Framework, spike: int) -> None:
        """Take a reading of a pool; *spike* bytes more were in use a moment ago.

        What the pool has grown by at its first reading after the driver's was in the driver's figure already, and so
        was what it has grown by in the next half second.
        """
        key, size = (reading.pid, reading.device), _size(reading)
        if key not in self._again or state.now - self._read_at < _ONE_MOMENT_S:
            self._again.add(key)
            self._rest = max(0, self._rest - max(0, size - self._held.get(key, 0)))
        self._held[key] = size
        self.add(state.now, self._sample(state, device, spike))

    def _sample(self, state: State, device: DeviceState, spike: int) -> _Sample:
        pools = card_pools(state, device)
        in_use, pool = pool_use(pools.shown)
        in_use += spike
        ends = list(accumulate(pools.others, initial=max(in_use, pool or 0)))
        card = device.info.total if device.info.total is not None else ends[-1] + self._rest + self._others
        rest = min(self._rest, max(0, card - ends[-1]))
        others = min(self._others, max(0, card - ends[-1] - rest))
        ends = [in_use, *ends, ends[-1] + min(self._context, rest), ends[-1] + rest, ends[-1] + rest + others]
        unknown = frozenset({"cached"}) if pool is None else frozenset[str]()
        return _Sample(tuple(ends), unknown if self._known else unknown | _OF_THE_DRIVER)


def _held(state: State, device: DeviceState) -> dict[tuple[int, str], int]:
    """Return the bytes of each pool on *device*: TensorFlow's, and those of other frameworks."""
    living = [one.hooked for one in state.processes.values() if one.hooked and not one.hooked.ended]
    readings: list[Allocator | Framework] = [*allocators_on(state, device)]
    for one in living:
        readings += frameworks_of(state, one, device)
    return {(reading.pid, reading.device): _size(reading) for reading in readings}


def _size(reading: Allocator | Framework) -> int:
    return max(reading.pool or 0, reading.in_use or 0)


class MemoryOverTime:
    """Collects the memory of all places. Each event is passed to it once the state contains the event."""

    def __init__(self, columns: int = COLUMNS) -> None:
        """*columns* is the most columns of a place; its newest minutes have a third more."""
        self._columns = columns
        self._cards: dict[int, _Card] = {}
        self._cpu = _Course(columns)

    def take(self, state: State, event: Event) -> None:
        """Take *event*, which *state* contains."""
        if isinstance(event, DeviceReading) and (device := state.devices.get(event.index)):
            self._card(device).driver_read(state, device, event)
        elif isinstance(event, Framework) and (device := card_of(state, event)):
            self._card(device).pool_read(state, device, event, 0)
        elif isinstance(event, Allocator) and not is_pinned(event.device):
            spike = max(0, (event.high or 0) - (event.in_use or 0))
            if is_cpu(event.device):
                in_use, pool = pool_use(cpu_pool_readings(state))
                self._cpu.add(state.now, _Sample((in_use + spike, max(in_use + spike, pool or 0))))
            elif device := device_of(state, event.pid, event.device):
                self._card(device).pool_read(state, device, event, spike)

    def _card(self, device: DeviceState) -> _Card:
        index = device.info.index
        if index not in self._cards:
            self._cards[index] = _Card(self._columns)
        return self._cards[index]

    def places(self, state: State) -> list[PagePlace]:
        """Return the GPUs in the order of their numbers, then the CPU's pool."""
        found = []
        for index, device in sorted(state.devices.items()):
            info, card = device.info, self._card(device)
            found.append(_page_place(state, str(index), f"GPU {index}", info.name, info.total, card))
        if state.cpu_pool:
            found.append(_page_place(state, CPU, "CPU pool", "", None, self._cpu))
        return found


def _page_place(state: State, key: str, name: str, model: str, total: int | None, course: _Course) -> PagePlace:
    columns = course.columns()
    on = CPU if key == CPU else f"GPU {key}"  # as in a run's limits
    limits = {str(run.run): limit for run in state.runs if (limit := run.limit_on.get(on))}
    layers = []
    for place, (layer, title) in enumerate(_LAYERS.items()):
        if key == CPU and place > 1:
            break
        sizes: Known = [one.ends[place] - (one.ends[place - 1] if place else 0) for _, one in columns]
        sizes = [None if layer in one.unknown else size for size, (_, one) in zip(sizes, columns, strict=True)]
        if layer not in _FRAMEWORKS or any(sizes):
            layers.append(PageLayer(key=layer, name=title, bytes=sizes))
    return PagePlace(
        key=key, name=name, model=model, total=total, times=[t for t, _ in columns], layers=layers, limits=limits
    )
