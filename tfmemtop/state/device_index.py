"""The logical devices on each GPU: an index that the fold keeps, which saves a search through all processes."""

from tfmemtop.state.lookup import device_of
from tfmemtop.state.model import State


def note_device(state: State, pid: int, logical: str) -> None:
    """Note on its GPU that process *pid* has reported the logical device *logical*."""
    if device := device_of(state, pid, logical):
        device.logical.setdefault(pid, set()).add(logical)


def note_all(state: State) -> None:
    """Note all logical devices again, because the GPUs have changed."""
    for pid, process in state.processes.items():
        if process.hooked:
            for logical in {*process.hooked.effective, *process.hooked.allocators}:
                note_device(state, pid, logical)


def forget_process(state: State, pid: int) -> None:
    """Remove process *pid* from the state."""
    del state.processes[pid]
    state.shape += 1
    for device in state.devices.values():
        device.logical.pop(pid, None)
