"""Finds out whether a process's memory may be read, and if not, why."""

import os
from pathlib import Path
from typing import NamedTuple

from tfmemtop.engine.sources.processes import ancestors
from tfmemtop.events import OutsideState

_SCOPE = Path("/proc/sys/kernel/yama/ptrace_scope")
_SYS_PTRACE = 19  # the bit of CAP_SYS_PTRACE, from include/uapi/linux/capability.h


class Rights(NamedTuple):
    """What decides whether this process may read the memory of another one."""

    own_uid: int
    capable: bool  # CAP_SYS_PTRACE
    scope: int  # of the security module Yama; 0 where there is no such module
    uid: int | None  # the other process's
    ancestor: bool  # whether the other descends from this process
    dumpable: bool  # whether the other lets its user look into it


def rights(pid: int) -> Rights:
    """Return what can be known of the rights on process *pid*."""
    own = _status(Path("/proc/self/status"))
    other = _status(Path(f"/proc/{pid}/status"))
    uid = int(other["Uid"].split()[0]) if "Uid" in other else None
    try:
        # If a process must not be looked into, the kernel makes root the owner of its files.
        owner: int | None = os.stat(f"/proc/{pid}/stat").st_uid  # noqa: PTH116 (no path of a file)
    except OSError:
        owner = uid
    try:
        scope = int(_SCOPE.read_text())
    except (OSError, ValueError):
        scope = 0
    capable = bool(int(own.get("CapEff", "0"), 16) >> _SYS_PTRACE & 1)
    return Rights(os.getuid(), capable, scope, uid, os.getpid() in ancestors(pid), uid is None or owner == uid)


def in_the_way(found: Rights) -> OutsideState:
    """Return the most important reason why this process cannot read the other's memory."""
    if found.uid is not None and found.uid != found.own_uid and not found.capable:
        return OutsideState.NO_CAPABILITY if found.own_uid == 0 else OutsideState.OTHER_USER
    if found.scope == 3:
        return OutsideState.NOBODY_MAY
    if found.capable:
        return OutsideState.REFUSED  # the process has more rights, or a security module forbids it
    if found.scope == 2:
        return OutsideState.ONLY_ROOT
    if found.scope == 1 and not found.ancestor:
        return OutsideState.ONLY_ANCESTORS
    if not found.dumpable:
        return OutsideState.PROTECTED
    return OutsideState.NO_CAPABILITY if found.own_uid == 0 else OutsideState.REFUSED


def _status(path: Path) -> dict[str, str]:
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return {}
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
