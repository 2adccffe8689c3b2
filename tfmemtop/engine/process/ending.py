"""Ends a run: with SIGTERM, then with SIGKILL; then waits until its memory is really free again."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Iterable, Set

from tfmemtop import events
from tfmemtop.engine.process.run import Runs
from tfmemtop.engine.sources.host import Host
from tfmemtop.engine.sources.readings import DRIVER_WAIT_S
from tfmemtop.engine.stream import Stream
from tfmemtop.units import MIB

_LOOK_S = 0.1
_KILL_WAIT_S = 5.0
_RELEASE_WAIT_S = 20.0
_RELEASE_LOOK_S = 0.25
_NEAR = 64 * MIB


class Footprint:
    """Follows the stream: the run's processes on GPUs, and what each GPU held before it.

    So the end of the run can wait until all of that is free.
    """

    def __init__(self) -> None:
        self._used: dict[int, int] = {}  # bytes, by GPU, of the newest reading
        self._before: dict[int, int] = {}  # likewise, when the run began
        self._listed: dict[int, set[int]] = {}  # processes, by GPU, of the newest reading
        self._of_runs: set[int] = set()
        self.pids: set[int] = set()
        """Processes of the run that the driver has listed on a GPU."""

    def take(self, event: events.Event) -> None:
        """Take one event of the stream."""
        match event:
            case events.Run():
                self._before = dict(self._used)
                self.pids.clear()
            case events.DeviceReading():
                if event.used is not None:
                    self._used[event.index] = event.used
                    self._before.setdefault(event.index, event.used)
                self._listed[event.index] = {process.pid for process in event.processes}
            case events.Process():
                (self._of_runs.discard if event.run is None else self._of_runs.add)(event.pid)
            case events.ProcessReadings():
                self._of_runs &= {reading.pid for reading in event.processes}
                self.pids |= self._of_runs & set[int]().union(*self._listed.values())
            case _:
                pass

    def held(self, readings: Iterable[events.DeviceReading], ours: Set[int]) -> events.StillHeld | None:
        """Return what the run still holds according to *readings*, or ``None``. *ours* are all processes of the run."""
        for reading in readings:
            for process in reading.processes:
                if process.pid in ours:
                    return events.StillHeld(events.Leftover.LISTED, reading.index, process.used, [process.pid])
            before = self._before.get(reading.index)
            listed_all = reading.processes_missing is None and reading.outside is None
            if not listed_all and reading.used is not None and before is not None:
                more = reading.used - before
                if more > _NEAR:
                    return events.StillHeld(events.Leftover.MORE_USED, reading.index, more)
        return None


class Ending:
    """Ends all descendants of this process, and all processes that the script has left behind, including daemons.

    *host* finds the processes. *read_devices* reads the GPUs at once. *apart* are the process sessions that are not
    ended: those of tfmemtop's own processes beside the script, such as a build of the probe.
    """

    def __init__(
        self,
        stream: Stream,
        runs: Runs,
        host: Host,
        read_devices: Callable[[], Awaitable[list[events.DeviceReading]]],
        apart: Set[int],
    ) -> None:
        self._stream = stream
        self._runs = runs
        self._host = host
        self._read_devices = read_devices
        self._apart = apart
        self._footprint = Footprint()
        self._deadline = 0.0
        stream.listen(self._footprint.take)

    def hasten(self, grace_s: float) -> None:
        """Move the deadline of an :meth:`end` in progress to *grace_s* seconds from now, if that is earlier."""
        deadline = self._stream.now() + max(0.0, grace_s)
        if deadline < self._deadline:
            self._deadline = deadline
            self._say(events.StoppingPhase.TERM, deadline)

    async def end(self, grace_s: float) -> None:
        """Send SIGTERM to all processes and, after *grace_s* seconds, SIGKILL to the rest; then wait for GPU memory.

        The events :class:`Stopping` report each phase.
        """
        # The regular search for processes may not have run yet, so search now.
        alive = self._victims()
        ours = alive | self._footprint.pids
        if alive:
            self._runs.will_be_ended()
            self._deadline = self._stream.now() + max(0.0, grace_s)
            self._say(events.StoppingPhase.TERM, self._deadline)
            for pid in alive:
                _send(pid, signal.SIGTERM)
            for pid in alive:
                _send(pid, signal.SIGCONT)  # a stopped process cannot end
            while (alive := self._victims()) and self._stream.now() < self._deadline:
                ours |= alive
                await asyncio.sleep(min(_LOOK_S, max(0.01, self._deadline - self._stream.now())))
        if alive:
            self._say(events.StoppingPhase.KILL)
            give_up = self._stream.now() + _KILL_WAIT_S
            while (alive := self._victims()) and self._stream.now() < give_up:
                ours |= alive
                for pid in alive:
                    _send(pid, signal.SIGKILL)
                await asyncio.sleep(_LOOK_S / 4)
        if alive:
            self._say(events.StoppingPhase.HELD, held=events.StillHeld(events.Leftover.PROCESSES, pids=sorted(alive)))
            return
        await self._release(ours)

    async def _release(self, ours: set[int]) -> None:
        give_up = self._stream.now() + _RELEASE_WAIT_S
        waiting = False
        while held := await self._look(ours):
            if self._stream.now() > give_up:
                self._say(events.StoppingPhase.HELD, held=held)
                return
            if not waiting:
                waiting = True
                self._say(events.StoppingPhase.RELEASING)
            await asyncio.sleep(_RELEASE_LOOK_S)
        self._say(events.StoppingPhase.RELEASED)

    async def _look(self, ours: set[int]) -> events.StillHeld | None:
        try:
            readings = await asyncio.wait_for(self._read_devices(), DRIVER_WAIT_S)
        except asyncio.TimeoutError:
            return events.StillHeld(events.Leftover.DRIVER_SILENT)
        return self._footprint.held(readings, ours)

    def _victims(self) -> set[int]:
        self._runs.reap()
        alive = self._host.find(self._apart)
        if self._runs.pid is not None:
            # The script's main thread may end first. The process then looks like a zombie, while its other threads
            # still hold all its memory.
            alive.add(self._runs.pid)
        return alive

    def _say(
        self, phase: events.StoppingPhase, deadline: float | None = None, held: events.StillHeld | None = None
    ) -> None:
        run, now = self._runs.number, self._stream.now()
        self._stream.publish(events.Stopping(t=now, run=run, phase=phase, deadline=deadline, held=held))


def _send(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        pass  # ended meanwhile, or of another user (sudo): processes that are left are found and reported later
