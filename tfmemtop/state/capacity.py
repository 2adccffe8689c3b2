"""Bounds of the state: what exceeds them is left out, and a notice reports it."""

from tfmemtop import events
from tfmemtop.events import Level, NoticeKind
from tfmemtop.state.lookup import hooked_of
from tfmemtop.state.model import DEVICES_KEPT, NOTICES_KEPT, PROCESSES_KEPT, Hooked, State


def add_notice(
    state: State,
    key: str,
    kind: NoticeKind,
    level: Level = Level.WARNING,
    *,
    detail: str = "",
    about: int | None = None,
    count: int | None = None,
) -> None:
    """Add a notice to the state, unless the state has too many and none with this *key*."""
    if key not in state.notices and len(state.notices) > NOTICES_KEPT:
        return
    notice = events.Notice(t=state.now, key=key, level=level, kind=kind, detail=detail, about=about, count=count)
    state.notices[key] = notice


def with_device(state: State, pid: int, device: str) -> Hooked | None:
    """Return the hook's data of process *pid* and note *device* in it.

    The number of devices of a process is bounded. Return ``None`` if *device* would exceed it, or if the hook is not in
    the process.
    """
    hooked = hooked_of(state, pid)
    if hooked is None or device in hooked.devices:
        return hooked
    if len(hooked.devices) < DEVICES_KEPT:
        hooked.devices.add(device)
        return hooked
    add_notice(state, "left-out-devices", NoticeKind.DEVICES_LEFT_OUT, about=pid, count=DEVICES_KEPT)
    return None


def room_for(state: State, pid: int) -> bool:
    if pid in state.processes or len(state.processes) < PROCESSES_KEPT:
        return True
    add_notice(state, "left-out-processes", NoticeKind.PROCESSES_LEFT_OUT, count=PROCESSES_KEPT)
    return False
