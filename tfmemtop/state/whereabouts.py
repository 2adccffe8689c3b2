"""Where logical devices lie: what the fold notes on each GPU, so that nobody has to look through all processes."""

from tfmemtop.state.lookup import device_of
from tfmemtop.state.model import State


def note_device(state: State, pid: int, logical: str) -> None:
    """Process *pid* has told of its logical device *logical*."""
    if device := device_of(state, pid, logical):
        device.logical.setdefault(pid, set()).add(logical)


def note_all(state: State) -> None:
    """The GPUs have changed: look for each logical device anew."""
    for pid, process in state.processes.items():
        if process.hooked:
            for logical in {*process.hooked.effective, *process.hooked.allocators}:
                note_device(state, pid, logical)


def forget_process(state: State, pid: int) -> None:
    """Process *pid* is no longer known."""
    del state.processes[pid]
    state.shape += 1
    for device in state.devices.values():
        device.logical.pop(pid, None)
