"""The devices and processes of the newest run, in the form in which several rules need them."""

from enum import Enum, auto

import msgspec

from tfmemtop import events
from tfmemtop.events.machine import DeviceKind, is_cpu, is_gpu, kind_of
from tfmemtop.findings.names import Place
from tfmemtop.state import State
from tfmemtop.state.history import Trend
from tfmemtop.state.lookup import LimitBy, device_of, limit_by, of_run, once_per_revision
from tfmemtop.state.model import DeviceState, Hooked, RunState


class RunDevice(msgspec.Struct, frozen=True):
    """One of TensorFlow's logical devices in one process of the newest run, and the card below it.

    ``asked_limit``, in bytes, is the one that the script or the user set; ``None`` if TensorFlow chose it.
    """

    pid: int
    name: str
    hooked: Hooked
    card: DeviceState | None
    effective: events.Effective | None
    reading: events.Allocator | None
    asked_limit: int | None
    place: Place

    @property
    def trend(self) -> Trend | None:
        return self.hooked.trends.get(self.name)

    @property
    def growth(self) -> bool | None:
        return self.effective.growth if self.effective else None

    @property
    def limit(self) -> int | None:
        known = self.reading.limit if self.reading else None
        return known if known is not None else self.effective.limit if self.effective else None

    @property
    def peak(self) -> int | None:
        """The most bytes in use over the whole run, even if the script reset TensorFlow's own peak."""
        told = self.reading.peak if self.reading else None
        return max(told or 0, self.trend.peak) if self.trend else told

    @property
    def asynchronous(self) -> bool:
        return self.effective is not None and self.effective.allocator == "cuda_malloc_async"


@once_per_revision
def hooked_of_run(state: State) -> list[tuple[int, Hooked]]:
    """Return number and record of the newest run's processes that have our hook inside, or are read from outside."""
    return [(pid, process.hooked) for pid, process in state.processes.items() if process.hooked and of_run(state, pid)]


def superseded(state: State, hooked: Hooked) -> bool:
    """Return whether the process has ended while others of the run go on: findings about it no longer matter."""
    if not hooked.ended or state.run is None or not state.run.going:
        return False
    return any(not other.ended for _, other in hooked_of_run(state))


def run_devices(state: State, kind: DeviceKind = DeviceKind.GPU) -> list[RunDevice]:
    """Return the run's logical devices of *kind*; after its end, those of its last processes."""
    return _current(state).get(kind, [])


@once_per_revision
def _current(state: State) -> dict[DeviceKind, list[RunDevice]]:
    return {
        kind: [device for device in devices if not superseded(state, device.hooked)]
        for kind, devices in _all(state).items()
    }


def used_cards(state: State) -> set[int]:
    """Return the NVML indices of the GPUs on which the run has logical devices; empty where that is not known."""
    cards = (
        device_of(state, pid, name)
        for pid, hooked in hooked_of_run(state)
        if not superseded(state, hooked)
        for name in {*hooked.effective, *hooked.allocators}
    )
    return {card.info.index for card in cards if card}


def ever_had_gpu(state: State) -> bool:
    """Return whether any process of the run had a logical device of a GPU at any time."""
    return DeviceKind.GPU in _all(state)


@once_per_revision
def _all(state: State) -> dict[DeviceKind, list[RunDevice]]:
    """Return all logical devices of the run, by kind. They are computed once for all rules."""
    several = sum(1 for _, hooked in hooked_of_run(state) if hooked.effective or hooked.allocators) > 1
    made: dict[DeviceKind, list[RunDevice]] = {}
    for pid, hooked in hooked_of_run(state):
        cards = {name: device_of(state, pid, name) for name in sorted({*hooked.effective, *hooked.allocators})}
        for name, card in cards.items():
            kind = kind_of(name)
            shared = sum(1 for other, its in cards.items() if its is card and kind_of(other) is kind) > 1
            index = card.info.index if card else None
            place = Place(index, name, card is not None and shared, pid if several else None)
            effective, reading = hooked.effective.get(name), hooked.allocators.get(name)
            limit = effective.limit if effective else None
            asked = limit if limit_by(state, hooked, name, limit) in (LimitBy.TFMEMTOP, LimitBy.SCRIPT) else None
            made.setdefault(kind, []).append(RunDevice(pid, name, hooked, card, effective, reading, asked, place))
    return made


def output(state: State) -> str:
    """Return the newest part of what the newest run has written to its terminal."""
    number = state.run.run if state.run else None
    return "".join(chunk.text for chunk in state.output if chunk.run == number)


def printed(state: State, *phrases: str) -> str | None:
    """Return the first of *phrases* that the newest run has written to its terminal, or ``None``."""
    text = output(state)
    return next((phrase for phrase in phrases if phrase in text), None)


def variable(state: State, pid: int, name: str) -> str | None:
    """Return the environment variable *name* of process *pid*; ``None`` if it is not set, or if that is not known.

    Once TensorFlow has initialised its devices, the value is the one of that moment.
    """
    process = state.processes.get(pid)
    if process and process.hooked and process.hooked.initialised:
        return process.hooked.initialised.variables.get(name)
    if state.run and name in state.run.settings.environment:
        return state.run.settings.environment[name]
    environment = state.environments.get(pid)
    return environment.variables.get(name) if environment else None


class PoolKind(Enum):
    """The way in which TensorFlow's pools took memory in a run."""

    NO_DEVICE = auto()
    CPU_ONLY = auto()
    CUDA = auto()  # cuda_malloc_async: CUDA's own pool
    GROWING = auto()
    RESERVED = auto()  # growth off
    UNKNOWN = auto()  # or not the same on all GPUs

    @property
    def on_gpu(self) -> bool:
        return self not in (PoolKind.NO_DEVICE, PoolKind.CPU_ONLY)


def pool_kind(run: RunState) -> PoolKind:
    """Return in which way the pools of *run* took memory, by what TensorFlow reported of its devices."""
    gpus = [effective for name, effective in run.effective.items() if is_gpu(name)]
    if not gpus:
        on_cpu = any(is_cpu(name) for name in run.effective)
        return PoolKind.CPU_ONLY if on_cpu else PoolKind.NO_DEVICE
    if any(effective.allocator == "cuda_malloc_async" for effective in gpus):
        return PoolKind.CUDA
    growths = {effective.growth for effective in gpus if effective.growth is not None}
    if len(growths) != 1:
        return PoolKind.UNKNOWN
    return PoolKind.GROWING if growths == {True} else PoolKind.RESERVED
