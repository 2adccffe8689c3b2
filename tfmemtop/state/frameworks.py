"""The frameworks beside TensorFlow that the newest run uses. Pure."""

from tfmemtop import events
from tfmemtop.events.device_names import is_gpu
from tfmemtop.frameworks import UsedFramework
from tfmemtop.state.memo import once_per_revision
from tfmemtop.state.model import DeviceState, Hooked, State


def hooked_with_frameworks(state: State) -> list[tuple[int, Hooked]]:
    """Return number and record of the newest run's processes."""
    run = state.run.run if state.run else None
    return [(pid, one.hooked) for pid, one in state.processes.items() if one.hooked and one.seen.run == run]


@once_per_revision
def used_frameworks(state: State) -> tuple[UsedFramework, ...]:
    """Return the frameworks beside TensorFlow that have used a GPU in the newest run, in the order of their names.

    On a machine without a GPU, return those that it has imported.
    """
    used: set[UsedFramework] = set()
    for _, hooked in hooked_with_frameworks(state):
        names = {reading.framework for reading in hooked.frameworks.values()}
        used |= {one for one in hooked.hello.frameworks if one.name in names or not state.devices}
    return tuple(sorted(used, key=lambda one: (one.name.value, one.version)))


def without_tensorflow(state: State) -> tuple[UsedFramework, ...]:
    """Return the same, but nothing if a process of the newest run uses TensorFlow: a GPU by it, where there is one.

    That TensorFlow is imported means little: Keras does so on JAX and PyTorch too, to set the seed of random numbers.
    """
    for _, one in hooked_with_frameworks(state):
        if any(map(is_gpu, (*one.effective, *one.allocators))) or (one.initialised and not state.devices):
            return ()
    return used_frameworks(state)


def card_of(state: State, reading: events.Framework) -> DeviceState | None:
    """Return the GPU that *reading* is of; ``None`` where that is not known."""
    if reading.uuid:
        return state.by_uuid.get(reading.uuid)
    return next(iter(state.devices.values())) if len(state.devices) == 1 else None
