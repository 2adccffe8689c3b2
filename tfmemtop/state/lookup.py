"""Look-ups in the state that the fold, the views and the rules share.

The last of them are about the frameworks beside TensorFlow that the newest run uses, and what they hold.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import NamedTuple, TypeVar

from tfmemtop import events
from tfmemtop.events.machine import is_cpu, is_gpu
from tfmemtop.frameworks import FrameworkName, UsedFramework
from tfmemtop.state.model import DeviceState, Hooked, State, Surroundings

T = TypeVar("T")


def once_per_revision(view: Callable[[State], T]) -> Callable[[State], T]:
    """Return *view* with a cache of its last result, which is valid until the next event is applied to the state."""
    last: list[tuple[State, int, T]] = []

    def remembered(state: State) -> T:
        if last and last[0][0] is state and last[0][1] == state.revision:
            return last[0][2]
        answer = view(state)
        last[:] = [(state, state.revision, answer)]
        return answer

    remembered.__doc__ = view.__doc__
    remembered.__name__ = view.__name__
    return remembered


DEFAULT_CPU_LIMIT = 2**36
"""TensorFlow's default limit of its CPU pool, in bytes."""

_LISTED_S = 3.0
"""Seconds after TensorFlow has made its devices. By then the process has its context, and the driver lists it."""


class LimitBy(Enum):
    """What set an allocator's limit."""

    TFMEMTOP = "tfmemtop"
    SCRIPT = "script"
    ENVIRONMENT = "environment"
    TENSORFLOW = "tensorflow"


def hooked_of(state: State, pid: int) -> Hooked | None:
    """Return the hook's data of process *pid*; ``None`` if there is none."""
    process = state.processes.get(pid)
    return process.hooked if process else None


def began(state: State, pid: int) -> float:
    """Return the session second at which the run of process *pid* began; 0 if it belongs to none."""
    process = state.processes.get(pid)
    number = process.seen.run if process else None
    return next((run.started for run in reversed(state.runs) if run.run == number), 0.0)


def device_of(state: State, pid: int, logical: str) -> DeviceState | None:
    """Return the physical GPU behind a process's logical device; ``None`` where that is not known."""
    if not is_gpu(logical):
        return None
    hooked = hooked_of(state, pid)
    effective = hooked.effective.get(logical) if hooked else None
    if effective and effective.uuid:
        return state.by_uuid.get(effective.uuid)
    return next(iter(state.devices.values())) if len(state.devices) == 1 else None


def of_run(state: State, pid: int) -> bool:
    """Return whether *pid* belongs to the newest run."""
    process, run = state.processes.get(pid), state.run
    return bool(process and run and process.seen.run == run.run)


def limit_by(state: State, hooked: Hooked, device: str, limit: int | None) -> LimitBy:
    """Return what set the *limit*, in bytes, of logical device *device* of a process of the newest run."""
    settings, effective = state.run.settings if state.run else None, hooked.effective.get(device)
    if limit is None:
        return LimitBy.TENSORFLOW
    if is_cpu(device):
        ours = settings and (settings.cpu_pool or (settings.memory_limit and not state.devices))
        return LimitBy.TFMEMTOP if ours else LimitBy.TENSORFLOW if limit == DEFAULT_CPU_LIMIT else LimitBy.ENVIRONMENT
    if effective and any(one.setting is events.Setting.MEMORY_LIMIT for one in effective.settled):
        return LimitBy.TFMEMTOP
    # A limit that the script did not request is TensorFlow's own choice: the hook reports it for a TF1 session.
    asked = effective is not None and effective.limit is not None and any(map(limits_a_gpu, hooked.requested))
    return LimitBy.SCRIPT if asked else LimitBy.TENSORFLOW


def limits_a_gpu(request: events.Requested) -> bool:
    """Return whether the call divided a GPU into logical devices, or limited it, and TensorFlow accepted that."""
    of_gpu = any(is_gpu(name) for name in request.devices or ())
    return request.call is events.Call.SET_LOGICAL_DEVICE_CONFIGURATION and of_gpu and request.error is None


def living_hooked(state: State) -> list[Hooked]:
    """Return the newest run's processes that have the hook and have not ended."""
    return [p.hooked for pid, p in state.processes.items() if p.hooked and of_run(state, pid) and not p.hooked.ended]


def process_total(state: State, device: DeviceState) -> int | None:
    """Return the bytes of the run's processes on *device* by NVML; ``None`` where NVML does not report them."""
    reading = device.reading
    if reading is None or reading.processes_missing:
        return None
    total = 0
    for process in reading.processes:
        if of_run(state, process.pid):
            if process.used is None:
                return None
            total += process.used
    return None if _called_otherwise(state, device, reading) else total


def _called_otherwise(state: State, device: DeviceState, reading: events.DeviceReading) -> bool:
    """Return whether a process of the run must be on *device* but is not listed.

    Then the driver lists it by another number, since process numbers in a container are not the host's.
    """
    return any(
        effective.t < reading.t - _LISTED_S and device_of(state, hooked.hello.pid, name) is device
        for hooked in living_hooked(state)
        if hooked.hello.pid not in device.by_pid
        for name, effective in hooked.effective.items()
    )


def allocators_on(state: State, device: DeviceState) -> list[events.Allocator]:
    """Return the newest readings of all allocators of living processes on *device*."""
    return [
        reading
        for pid, process in state.processes.items()
        if process.hooked and not process.hooked.ended
        for reading in allocators_of(state, pid, process.hooked, device)
    ]


def allocators_of(state: State, pid: int, hooked: Hooked, device: DeviceState) -> list[events.Allocator]:
    """Return the newest readings of process *pid*'s allocators on *device*."""
    return [reading for name, reading in hooked.allocators.items() if device_of(state, pid, name) is device]


def sum_known(sizes: Iterable[int | None]) -> int | None:
    """Return the sum of *sizes*; ``None`` if one of them is not known, or there are none."""
    known = list(sizes)
    return sum(size for size in known if size is not None) if known and None not in known else None


def limit_of(hooked: Hooked, device: str) -> int | None:
    """Return the limit of a pool in bytes, by its allocator or else by TensorFlow's options; ``None`` if not known."""
    reading, effective = hooked.allocators.get(device), hooked.effective.get(device)
    return reading.limit if reading and reading.limit is not None else effective.limit if effective else None


def pool_use(readings: Sequence[events.Allocator | events.Framework]) -> tuple[int, int | None]:
    """Return sums over *readings*: bytes in use, and bytes of the pools, ``None`` if any pool's size is not known."""
    in_use = sum(reading.in_use or 0 for reading in readings)
    pools = [reading.pool for reading in readings]
    return in_use, None if None in pools else sum(pool for pool in pools if pool is not None)


def cached_of(pool: int | None, in_use: int | None) -> int | None:
    """Return the bytes of a pool that are not in use; ``None`` where either size is not known."""
    return None if pool is None or in_use is None else max(0, pool - in_use)


def cpu_pool_readings(state: State) -> list[events.Allocator]:
    """Return the newest readings of the CPU pools of all living processes; if there are none, of all that ended."""
    readings = [
        (reading, process.hooked.ended)
        for process in state.processes.values()
        if process.hooked
        for logical, reading in process.hooked.allocators.items()
        if is_cpu(logical)
    ]
    return [reading for reading, ended in readings if not ended] or [reading for reading, _ in readings]


def surroundings(state: State, hooked: Hooked) -> Surroundings:
    """Return the newest readings that matter for an allocation of this process."""
    return Surroundings(
        readings=dict(hooked.allocators),
        maps={name: pool.map for name, pool in hooked.pools.items() if pool.map},
        cards={index: device.reading for index, device in state.devices.items() if device.reading},
        host_used=state.host_used,
    )


def _hooked(state: State) -> list[Hooked]:
    return [process.hooked for pid, process in state.processes.items() if process.hooked and of_run(state, pid)]


@once_per_revision
def used_frameworks(state: State) -> tuple[UsedFramework, ...]:
    """Return the frameworks beside TensorFlow that have used a GPU in the newest run, in the order of their names.

    On a machine without a GPU, return those that it has imported.
    """
    used: set[UsedFramework] = set()
    for hooked in _hooked(state):
        names = {reading.framework for reading in hooked.frameworks.values()}
        used |= {one for one in hooked.hello.frameworks if one.name in names or not state.devices}
    return tuple(sorted(used, key=lambda one: (one.name.value, one.version)))


def without_tensorflow(state: State) -> tuple[UsedFramework, ...]:
    """Return the same, but nothing if a process of the newest run uses TensorFlow: a GPU by it, where there is one.

    That TensorFlow is imported means little: Keras does so on JAX and PyTorch too, to set the seed of random numbers.
    Without a GPU, a process that goes on may still use it.
    """
    for one in _hooked(state):
        on_cpu = one.initialised or (one.hello.tensorflow_path and not one.ended)
        if any(map(is_gpu, (*one.effective, *one.allocators))) or (on_cpu and not state.devices):
            return ()
    return used_frameworks(state)


def card_of(state: State, reading: events.Framework) -> DeviceState | None:
    """Return the GPU that *reading* is of; ``None`` where that is not known."""
    if reading.uuid:
        return state.by_uuid.get(reading.uuid)
    return next(iter(state.devices.values())) if len(state.devices) == 1 else None


def frameworks_of(state: State, hooked: Hooked, device: DeviceState) -> list[events.Framework]:
    """Return the newest readings of a process's other frameworks on *device*."""
    return [reading for reading in hooked.frameworks.values() if card_of(state, reading) is device]


class CardPools(NamedTuple):
    """The pools on a card of which in use and cached are shown, and the bytes of the ``others``.

    These are in the order of :class:`FrameworkName`.
    """

    shown: Sequence[events.Allocator | events.Framework]
    others: Sequence[int] = (0,) * len(FrameworkName)


def card_pools(state: State, device: DeviceState) -> CardPools:
    """Return the newest readings of living processes: a framework that is alone there is shown as TensorFlow is."""
    frameworks = [
        reading
        for process in state.processes.values()
        if process.hooked and process.hooked.frameworks and not process.hooked.ended
        for reading in frameworks_of(state, process.hooked, device)
    ]
    allocators = allocators_on(state, device)
    if not frameworks:
        return CardPools(allocators)
    others = dict.fromkeys(FrameworkName, 0)
    for reading in frameworks:
        others[reading.framework] += reading.pool or 0
    alone = not allocators and len({reading.framework for reading in frameworks}) == 1
    return CardPools(frameworks) if alone else CardPools(allocators, tuple(others.values()))
