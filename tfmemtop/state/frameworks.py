"""The frameworks beside TensorFlow that the newest run uses, and what they hold. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from tfmemtop import events
from tfmemtop.events.machine import is_gpu
from tfmemtop.frameworks import FrameworkName, UsedFramework
from tfmemtop.state.lookup import allocators_on, of_run, once_per_revision
from tfmemtop.state.model import DeviceState, Hooked, State


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
