"""Ending a run: ask, insist, and wait until its memory is really free again."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Collection

from tfmemtop.engine.procfs import descendants, read_stat, since_boot
from tfmemtop.engine.run import Runs
from tfmemtop.engine.stream import Stream
from tfmemtop.events import DeviceReading, Stopping
from tfmemtop.units import format_bytes

_LOOK_S = 0.1
_KILL_WAIT_S = 5.0
_RELEASE_WAIT_S = 20.0
_RELEASE_LOOK_S = 0.25
_DRIVER_WAIT_S = 10.0
_NEAR = 64 * 1024 * 1024


class Ending:
    """Ends everything that descends from the engine, and what the script's processes have left behind: daemons too.

    Left alone are the sessions *apart*: what we have started ourselves, such as a build of the probe.
    """

    def __init__(self, stream: Stream, runs: Runs, read_devices: Callable[[], Awaitable[list[DeviceReading]]]) -> None:
        self._stream = stream
        self._runs = runs
        self._read_devices = read_devices
        self._deadline = 0.0
        self._since = since_boot() - 1
        self.apart: Collection[int] = ()
        self.baseline: dict[int, int] = {}  # bytes used on each GPU when the run began
        self.gpu_pids: set[int] = set()  # processes of the run that were seen on a GPU

    def hasten(self, grace_s: float) -> None:
        """Bring the deadline of an ending under way forward."""
        deadline = self._stream.now() + max(0.0, grace_s)
        if deadline < self._deadline:
            self._deadline = deadline
            self._say("term", deadline)

    async def end(self, grace_s: float) -> None:
        """TERM to all, KILL to what is left after *grace_s*, then wait for GPU memory."""
        # The sweep that finds processes may not have run yet: look now.
        alive = self._victims()
        ours = alive | self.gpu_pids
        if alive:
            self._runs.ending = True
            self._deadline = self._stream.now() + max(0.0, grace_s)
            self._say("term", self._deadline)
            for pid in alive:
                _send(pid, signal.SIGTERM)
            for pid in alive:
                _send(pid, signal.SIGCONT)  # one that is stopped cannot end
            while (alive := self._victims()) and self._stream.now() < self._deadline:
                ours |= alive
                await asyncio.sleep(min(_LOOK_S, max(0.01, self._deadline - self._stream.now())))
        if alive:
            self._say("kill")
            give_up = self._stream.now() + _KILL_WAIT_S
            while (alive := self._victims()) and self._stream.now() < give_up:
                ours |= alive
                for pid in alive:
                    _send(pid, signal.SIGKILL)
                await asyncio.sleep(_LOOK_S / 4)
        if alive:
            names = ", ".join(f"{pid} ({stat.name})" for pid in sorted(alive) if (stat := read_stat(pid)))
            self._say("held", detail=f"the kernel does not let go of {names}")
            return
        await self._release(ours)

    async def _release(self, ours: set[int]) -> None:
        give_up = self._stream.now() + _RELEASE_WAIT_S
        waiting = False
        while held := await self._look(ours):
            if self._stream.now() > give_up:
                self._say("held", detail=held)
                return
            if not waiting:
                waiting = True
                self._say("releasing")
            await asyncio.sleep(_RELEASE_LOOK_S)
        self._say("released")

    async def _look(self, ours: set[int]) -> str:
        try:
            readings = await asyncio.wait_for(self._read_devices(), _DRIVER_WAIT_S)
        except asyncio.TimeoutError:
            return "the driver does not answer, so what is still held cannot be known"
        return self._held(readings, ours)

    def _held(self, readings: list[DeviceReading], ours: set[int]) -> str:
        for reading in readings:
            for process in reading.processes:
                if process.pid in ours:
                    return f"GPU {reading.index} still lists process {process.pid}, {format_bytes(process.used)}"
            before = self.baseline.get(reading.index)
            listed_all = reading.processes_missing is None and reading.outside is None
            if not listed_all and reading.used is not None and before is not None:
                more = reading.used - before
                if more > _NEAR:
                    return f"GPU {reading.index} holds {format_bytes(more)} more than before the run"
        return ""

    def _victims(self) -> set[int]:
        self._runs.reap()
        alive = descendants(os.getpid(), self._runs.mark, self._since)
        if self.apart:
            alive = {pid for pid in alive if (stat := read_stat(pid)) and stat.session not in self.apart}
        if self._runs.pid is not None:
            # Its main thread ends first and reads as a zombie, while the others still hold all its memory.
            alive.add(self._runs.pid)
        return alive

    def _say(self, phase: str, deadline: float | None = None, detail: str = "") -> None:
        self._stream.publish(_stopping(self._runs.number, phase, deadline, detail))


def _stopping(run: int, phase: str, deadline: float | None, detail: str) -> Stopping:
    return Stopping(t=0.0, run=run, phase=phase, deadline=deadline, detail=detail)  # type: ignore[arg-type]


def _send(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        pass  # gone meanwhile, or of another user (sudo): what is left is looked at and told
