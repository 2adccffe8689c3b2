"""Reads the run's processes, and those on the GPUs, from the host's ``/proc``."""

import os
import pwd
import time
from collections.abc import Collection, Mapping, Set
from pathlib import Path
from typing import NamedTuple

from tfmemtop.boot import KEEPER
from tfmemtop.engine.sources import cgroup, hook_absence
from tfmemtop.engine.sources.machine import Processors, available_memory, boot_time
from tfmemtop.engine.sources.procfs import Stat, all_pids, carries, read_command, read_stat, since_boot
from tfmemtop.events import HookAbsence, Process, ProcessReading, ProcessReadings
from tfmemtop.units import MIB

_YOUNG_S = 5.0
_FOREIGN_FOR_S = 60.0
_ABSENT_AFTER_S = 3.0
_ABSENT_LOOK_S = 4.0
_ABSENT_LOOK_MOST_S = 60.0

TENSORFLOW_LEAST = 60 * MIB
"""Bytes of host memory. A process that has less is not checked for TensorFlow, which takes more than twice that."""


class Shown(NamedTuple):
    """A process that is shown: when it started, in seconds since the machine's boot, and its run if it has one."""

    started: float
    run: int | None


class Sweep(NamedTuple):
    """One look at all processes."""

    processes: list[Process]  # new ones, and those of which something has changed
    readings: ProcessReadings
    gone: list[int]
    unknown: set[int]  # requested, but not found
    shown: Mapping[int, Shown]


class _Known:
    """A process that is shown."""

    def __init__(self, pid: int, stat: Stat, uid: int, run: int | None) -> None:
        self.pid = pid
        self.stat = stat
        self.uid = uid
        self.run = run
        self.seen = time.monotonic()
        self.command: list[str] = []
        self.cpu_at: tuple[float, float] | None = None
        self.hook_absence: HookAbsence | None = None
        self.look_at = self.seen
        self.look_every = _ABSENT_LOOK_S
        self.loaded_since: float | None = None


class Host:
    """Looks at the processes, and keeps what it found for the next look. Not thread-safe: one look at a time."""

    def __init__(
        self, root: int, inject: Path, mark: bytes | None = None, member: int | None = None, helper: int = 0
    ) -> None:
        """The run's processes are *root*'s descendants, and their orphans that have *mark* in their environment.

        The process *member* and its descendants belong to the run too. It has the hook, but is not a child of this
        process. The process *helper* does not belong to the run: tfmemtop started it for itself. *inject* is the hook's
        folder.
        """
        self._root = root
        self._helper = helper
        self._member = member
        self._mark = mark
        self._since = since_boot() - 1
        self._inject = inject
        self._known: dict[int, _Known] = {}
        self._foreign: set[int] = set()
        self._adopted: int | None = None
        self._run = 0  # the first run; 0 before it begins
        self._foreign_since = time.monotonic()
        self._boot = boot_time()
        self._memory = cgroup.host_memory()
        self._cgroups = list(cgroup.hierarchies())
        self._users: dict[int, str] = {}
        self._processors = Processors()

    def sweep(
        self,
        wanted: Collection[int],
        run: int,
        hooked: Set[int],
        apart: Set[int] = frozenset(),
        t: float = 0.0,
        adopted: int | None = None,
    ) -> Sweep:
        """Look at the run's processes and at those in *wanted*.

        *run* is the number of the present run, *t* the time in session seconds. *hooked* are the processes with a hook.
        *apart* are process sessions (``setsid``): their processes descend from the root, but do not belong to the
        script. The process *adopted* does not descend from the root, but belongs to the run, with its descendants.
        """
        if adopted is not None and adopted != self._adopted:
            self._adopted = adopted
            self._known, self._foreign = {}, set()  # their runs must be found anew
        if run and not self._run:
            self._foreign = set()  # a kernel runs before its run begins
        self._run = self._run or run
        gone, stats = self._discover(set(wanted), run, apart)
        now = time.monotonic()
        changed: list[Process] = []
        readings = []
        renamed = {pid for pid, known in self._known.items() if self._refresh_command(known, stats[pid], now)}
        gone += self._drop_keepers(renamed)
        for pid, known in self._known.items():
            stat = stats[pid]
            readings.append(ProcessReading(pid=pid, cpu=_cpu_percent(known, stat, now), rss=stat.rss))
            news = pid in renamed
            ours = known.run is not None and self._adopted is None
            if ours and known.hook_absence is None and pid not in hooked:
                news |= self._look_for_absence(known, stat, now, hooked)
            known.stat = stat
            if news:
                changed.append(self._describe(known, t))
        free = cgroup.available(available_memory(), cgroup.limits(self._memory.machine, self._cgroups))
        return Sweep(
            changed,
            ProcessReadings(
                t=t,
                processes=readings,
                host_used=max(0, self._memory.total - free),
                host_cpu=self._processors.busy_percent(),
            ),
            gone,
            {pid for pid in wanted if pid not in self._known},
            {pid: Shown(known.stat.started, known.run) for pid, known in self._known.items()},
        )

    def _discover(self, wanted: set[int], run: int, apart: Set[int]) -> tuple[list[int], dict[int, Stat]]:
        now = time.monotonic()
        pids = all_pids()
        if now - self._foreign_since > _FOREIGN_FOR_S:
            # The kernel may have given a number to another process since.
            self._foreign, self._foreign_since = set(), now
        self._foreign &= pids
        self._foreign -= wanted
        stats: dict[int, Stat] = {}
        gone = []
        for pid, known in list(self._known.items()):
            stat = read_stat(pid) if pid in pids else None
            replaced = stat is not None and stat.started != known.stat.started
            unwanted = known.run is None and pid not in wanted
            if stat is None or stat.zombie or replaced or unwanted or stat.session in apart:
                del self._known[pid]
                gone.append(pid)
            else:
                stats[pid] = stat
        new: dict[int, Stat] = {}
        for pid in pids - self._known.keys() - self._foreign - {self._root, self._helper}:
            stat = read_stat(pid)
            if stat is not None and not stat.zombie:
                new[pid] = stat
        for pid, stat in new.items():
            of_run = None if stat.session in apart else self._run_of(stat.ppid, new, run)
            of_run = (run or None) if pid in (self._adopted, self._member) else of_run
            if of_run is None and self._mark and stat.started >= self._since and carries(pid, self._mark):
                of_run = run or None
            if of_run is not None and read_command(pid)[:1] == [KEEPER]:
                of_run = None  # another session's keeper, such as that of a kernel under a Jupyter that is watched
            if of_run is None and pid not in wanted:
                self._foreign.add(pid)
                continue
            try:
                uid = os.stat(f"/proc/{pid}").st_uid  # noqa: PTH116 (each second, for many)
            except OSError:
                continue
            self._known[pid] = _Known(pid, stat, uid, of_run)
            stats[pid] = stat
        return gone, stats

    def _run_of(self, ppid: int, new: dict[int, Stat], run: int) -> int | None:
        for _ in range(len(new) + 1):
            if ppid in (self._root, self._adopted, self._member):
                return run or None
            if ppid in self._known:
                return self._known[ppid].run
            if ppid not in new:
                return None
            ppid = new[ppid].ppid
        return None

    def _drop_keepers(self, renamed: Set[int]) -> list[int]:
        """Drop those of the processes *renamed* that are the keeper of another session, and the engine, its child.

        A notebook's kernel with a session of its own has them, under a Jupyter that is watched. A keeper that was
        found before it had its name was taken for a process of the run.
        """
        known_now = {pid: self._known[pid] for pid in renamed}
        keepers = {pid for pid, one in known_now.items() if one.run is not None and one.command[:1] == [KEEPER]}
        dropped = [pid for pid, known in self._known.items() if pid in keepers or known.stat.ppid in keepers]
        for pid in dropped:
            del self._known[pid]
        self._foreign.update(dropped)
        return dropped

    def _refresh_command(self, known: _Known, stat: Stat, now: float) -> bool:
        """Read the command line again if it may have changed, and return whether it has.

        Between fork and exec a process has its parent's command line.
        """
        if known.command and now - known.seen > _YOUNG_S and stat.name == known.stat.name:
            return False
        command = read_command(known.pid) or [f"[{stat.name}]"]
        changed = command != known.command
        known.command = command
        return changed

    def _look_for_absence(self, known: _Known, stat: Stat, now: float, hooked: Set[int]) -> bool:
        if now < known.look_at or stat.rss < TENSORFLOW_LEAST:
            return False
        if known.loaded_since is None:
            parent = self._known.get(stat.ppid)
            forked = parent is not None and parent.pid in hooked and parent.command == known.command
            if not forked and hook_absence.has_tensorflow(known.pid):
                known.loaded_since = now
                known.look_at = now + _ABSENT_AFTER_S
            else:
                # Reading /proc/PID/maps costs the kernel a millisecond, so it is done less and less often.
                known.look_at = now + known.look_every
                known.look_every = min(known.look_every * 2, _ABSENT_LOOK_MOST_S)
            return False
        known.hook_absence = hook_absence.absence(known.pid, self._inject, self._mark)
        return True

    def _describe(self, known: _Known, t: float) -> Process:
        return Process(
            t=t,
            pid=known.pid,
            ppid=known.stat.ppid,
            user=self._user(known.uid),
            command=known.command,
            started=self._boot + known.stat.started,
            run=known.run,
            hook_absence=known.hook_absence,
        )

    def _user(self, uid: int) -> str:
        if uid not in self._users:
            try:
                self._users[uid] = pwd.getpwuid(uid).pw_name
            except KeyError:
                self._users[uid] = str(uid)
        return self._users[uid]


def _cpu_percent(known: _Known, stat: Stat, now: float) -> float | None:
    before, known.cpu_at = known.cpu_at, (now, stat.cpu_s)
    if before is None or now <= before[0]:
        return None
    return round(max(0.0, 100 * (stat.cpu_s - before[1]) / (now - before[0])), 1)
