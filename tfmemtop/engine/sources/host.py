"""Finds the run's processes and looks at them, and at those on the GPUs. It says why a hook is not in one of them."""

import os
import socket
import time
from collections.abc import Collection, Mapping, Set
from pathlib import Path
from typing import NamedTuple

import tfmemtop
from tfmemtop.boot import ENGINE, KEEPER
from tfmemtop.engine.sources import cgroup
from tfmemtop.engine.sources.cgroup import host_memory
from tfmemtop.engine.sources.processes import (
    HostProcess,
    all_pids,
    available_memory,
    busy_percent,
    carries,
    executable,
    find,
    has_tensorflow,
    own_start,
    read_command,
    read_environment,
    session_of,
)
from tfmemtop.engine.sources.workloads import read_workload
from tfmemtop.events import FORMAT, Absence, HookAbsence, Process, ProcessReadings, Session
from tfmemtop.placement import placement
from tfmemtop.settings import INTERVAL_S
from tfmemtop.units import MIB

_WITH_ARGUMENT = "WX"
BY_OPTION = {"I": Absence.ISOLATED, "E": Absence.IGNORES_ENVIRONMENT, "S": Absence.NO_SITE}
"""Python's own options that keep the hook out."""


def find_absence(pid: int, inject: Path, mark: bytes | None = None) -> HookAbsence:
    """Return why the hook is not inside process *pid*.

    *inject* is the hook's folder. *mark* is the entry that this session puts into the environment, as ``NAME=value``.
    """
    command = read_command(pid)
    try:
        program = executable(pid)
        environment = read_environment(pid)
    except OSError:
        return HookAbsence(Absence.UNREADABLE)
    if not _name(program).startswith(("python", "pypy")):
        return HookAbsence(Absence.OTHER_PROGRAM, _name(program))
    if flag := shutting_flag(command):
        return HookAbsence(BY_OPTION[flag])
    if inject not in map(Path, environment.get("PYTHONPATH", "").split(os.pathsep)):
        return HookAbsence(Absence.ENVIRONMENT_CLEANED)
    variable, _, ours = os.fsdecode(mark or b"").partition("=")
    theirs = environment.get(variable, ours)
    if theirs != ours:
        return HookAbsence(Absence.OTHER_SESSION, session=Path(theirs).parent.name)
    return HookAbsence(Absence.UNEXPLAINED)


def _name(program: str) -> str:
    """Return the file's name. Bytes that are not UTF-8 are replaced."""
    return os.fsencode(os.path.basename(program)).decode(errors="replace")  # noqa: PTH119 (it may be no path)


def shutting_flag(command: list[str]) -> str | None:
    """Return Python's own option that keeps the hook out: I, E or S, also combined as in ``-Is``. ``None`` if none."""
    words = iter(command[1:])
    for word in words:
        if word == "--check-hash-based-pycs":
            next(words, None)
            continue
        if not word.startswith("-") or word in ("-", "--"):
            return None
        if word.startswith("--"):
            continue
        for position, letter in enumerate(word[1:], 1):
            if letter in BY_OPTION:
                return letter
            if letter in "cm":
                return None  # the rest belongs to the program
            if letter in _WITH_ARGUMENT:
                if position == len(word) - 1:
                    next(words, None)
                break
    return None


_YOUNG_S = 5.0
_FOREIGN_FOR_S = 60.0
_ABSENT_AFTER_S = 3.0
_ABSENT_LOOK_S = 4.0
_ABSENT_LOOK_MOST_S = 60.0

TENSORFLOW_LEAST = 60 * MIB
"""Bytes of host memory. A process that has less is not checked for TensorFlow, which takes more than twice that."""


class Shown:
    """A process that is shown, and its run if it has one."""

    def __init__(self, process: HostProcess, run: int | None) -> None:
        self.process = process
        self.run = run
        self.seen = time.monotonic()
        self.command: list[str] = []
        self.named = ""  # the process's name when the command line was read
        self.hook_absence: HookAbsence | None = None
        self.look_at = self.seen
        self.look_every = _ABSENT_LOOK_S
        self.loaded_since: float | None = None


class Sweep(NamedTuple):
    """One look at all processes."""

    processes: list[Process]  # new ones, and those of which something has changed
    readings: ProcessReadings
    gone: list[int]
    unknown: set[int]  # requested, but not found
    shown: Mapping[int, Shown]


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
        self._since = own_start()
        self._inject = inject
        self._known: dict[int, Shown] = {}
        self._foreign: set[int] = set()
        self._adopted: int | None = None
        self._run = 0  # the first run; 0 before it begins
        self._foreign_since = time.monotonic()
        self._memory = cgroup.host_memory()
        self._cgroups = list(cgroup.hierarchies())
        self._looked = False

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
        gone = self._discover(set(wanted), run, apart)
        now = time.monotonic()
        changed: list[Process] = []
        readings = []
        renamed = {pid for pid, known in self._known.items() if self._refresh_command(known, now)}
        for pid, known in self._known.items():
            readings.append(known.process.reading)
            news = pid in renamed
            ours = known.run is not None and self._adopted is None
            if ours and known.hook_absence is None and pid not in hooked:
                news |= self._look_for_absence(known, now, hooked)
            if news:
                changed.append(self._describe(known, t))
        busy, looked = busy_percent(), self._looked
        self._looked = True
        free = cgroup.available(available_memory(), cgroup.limits(self._memory.machine, self._cgroups))
        return Sweep(
            changed,
            ProcessReadings(
                t=t,
                processes=readings,
                host_used=max(0, self._memory.total - free),
                host_cpu=busy if looked else None,
            ),
            gone,
            {pid for pid in wanted if pid not in self._known},
            dict(self._known),
        )

    def find(self, apart: Set[int]) -> set[int]:
        """Return the processes that belong to the run now, without any figures."""
        self._discover(set(), 1, apart)
        return set(self._known)

    def _discover(self, wanted: set[int], run: int, apart: Set[int]) -> list[int]:
        """Refresh the known processes and find new ones. Return those that are no longer known."""
        now = time.monotonic()
        pids = all_pids()
        if now - self._foreign_since > _FOREIGN_FOR_S:
            # The kernel may have given a number to another process since.
            self._foreign, self._foreign_since = set(), now
        self._foreign &= pids
        self._foreign -= wanted
        gone = []
        for pid, known in list(self._known.items()):
            unwanted = known.run is None and pid not in wanted
            if unwanted or not known.process.refresh() or (apart and session_of(pid) in apart):
                del self._known[pid]
                gone.append(pid)
        unknown = pids - self._known.keys() - self._foreign - {self._root, self._helper}
        new = {pid: process for pid in unknown if (process := find(pid)) is not None}
        for pid, process in new.items():
            of_run = None if session_of(pid) in apart else self._run_of(process.ppid, new, run)
            of_run = (run or None) if pid in (self._adopted, self._member) else of_run
            if of_run is None and self._mark and process.started >= self._since and carries(pid, self._mark):
                of_run = run or None
            if of_run is not None and ((command := read_command(pid))[:1] == [KEEPER] or ENGINE in command):
                of_run = None  # another session's keeper, such as that of a kernel under a Jupyter that is watched
            if of_run is None and pid not in wanted:
                self._foreign.add(pid)
            else:
                self._known[pid] = Shown(process, of_run)
        return gone

    def _run_of(self, ppid: int, new: Mapping[int, HostProcess], run: int) -> int | None:
        for _ in range(len(new) + 1):
            if ppid in (self._root, self._adopted, self._member):
                return run or None
            if ppid in self._known:
                return self._known[ppid].run
            if ppid not in new:
                return None
            ppid = new[ppid].ppid
        return None

    def _refresh_command(self, known: Shown, now: float) -> bool:
        """Read the command line again if it may have changed, and return whether it has.

        Between fork and exec a process has its parent's command line.
        """
        name = known.process.name
        if known.command and now - known.seen > _YOUNG_S and name == known.named:
            return False
        command = read_command(known.process.pid) or [f"[{name}]"]
        changed = command != known.command
        known.command, known.named = command, name
        return changed

    def _look_for_absence(self, known: Shown, now: float, hooked: Set[int]) -> bool:
        process = known.process
        if now < known.look_at or process.rss < TENSORFLOW_LEAST:
            return False
        if known.loaded_since is None:
            parent = self._known.get(process.ppid)
            forked = parent is not None and process.ppid in hooked and parent.command == known.command
            if not forked and has_tensorflow(process.pid):
                known.loaded_since = now
                known.look_at = now + _ABSENT_AFTER_S
            else:
                # Reading /proc/PID/maps costs the kernel a millisecond, so it is done less and less often.
                known.look_at = now + known.look_every
                known.look_every = min(known.look_every * 2, _ABSENT_LOOK_MOST_S)
            return False
        known.hook_absence = find_absence(process.pid, self._inject, self._mark)
        return True

    def _describe(self, known: Shown, t: float) -> Process:
        process = known.process
        belonging = read_workload(process.pid, known.command)
        return Process(
            t=t,
            pid=process.pid,
            ppid=process.ppid,
            user=process.user,
            command=known.command,
            started=process.started,
            run=known.run,
            hook_absence=known.hook_absence,
            **belonging._asdict(),
        )


def describe_session(
    id: str,
    command: list[str],
    environment: Mapping[str, str],
    *,
    output_path: str | None = None,
    interval_s: float = INTERVAL_S,
    holders_interval_s: float = 0.0,
) -> Session:
    """Return the event that begins a session: its *command*, its user, its machine. Its time is 0 by definition.

    *environment* is that of the command.
    """
    memory = host_memory()
    host = socket.gethostname()
    return Session(
        t=0.0,
        format=FORMAT,
        version=tfmemtop.__version__,
        id=id,
        started=time.time(),
        host=host,
        user=HostProcess(os.getpid()).user,
        host_memory=memory.total,
        host_memory_of=memory.owner,
        cores=os.cpu_count() or 1,
        interval_s=interval_s,
        holders_interval_s=holders_interval_s,
        command=command,
        output_path=output_path,
        placement=placement(environment, host),
    )
