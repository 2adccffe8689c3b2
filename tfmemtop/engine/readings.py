"""Once a second: the GPUs and the processes, read in threads, published in order."""

import asyncio
import os
import traceback
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor

from tfmemtop.engine.ending import Ending
from tfmemtop.engine.foreign import CANNOT_BE_TOLD, Foreign
from tfmemtop.engine.hooks import Hooks
from tfmemtop.engine.host import Host
from tfmemtop.engine.nvml import Nvml, Reading
from tfmemtop.engine.procfs import read_stat
from tfmemtop.engine.run import INJECT, Runs
from tfmemtop.engine.stream import Stream
from tfmemtop.events import AnyEvent, DeviceReading, Initialised

PACE_S = 1.0
_DRIVER_HANGS_S = 5.0
_STRANGE_AFTER = 3
_AFTER_FAILURE_S = 5.0


class Readings:
    """The two sources that have to be asked. A driver that hangs does not hold up the processes."""

    def __init__(
        self, stream: Stream, runs: Runs, hooks: Hooks, nvml: Nvml | None = None, foreign: Foreign | None = None
    ) -> None:
        self._stream = stream
        self._runs = runs
        self._hooks = hooks
        self._nvml = nvml or Nvml()
        self.host = Host(os.getpid(), INJECT, runs.mark)
        self._foreign = foreign or Foreign(self.host.of_runs)
        self._driver_thread = ThreadPoolExecutor(1, "nvml")
        self._host_thread = ThreadPoolExecutor(1, "host")
        self._on_gpus: set[int] = set()
        self._strange: dict[int, int] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._woken = asyncio.Event()
        self._made = 0  # how often a process has said that TensorFlow's devices are there
        self._made_some = asyncio.Event()
        self.ending: Ending | None = None
        self.swept: Callable[[], None] = lambda: None

    def begin(self) -> None:
        """Start both; needs the running loop."""
        self._stream.listen(self._take)
        self._tasks = [
            asyncio.ensure_future(self._keep_on("GPUs", self._watch_devices)),
            asyncio.ensure_future(self._keep_on("processes", self._watch_processes)),
        ]

    def hurry(self) -> None:
        """Look at the processes now: something has changed."""
        self._woken.set()

    def close(self) -> None:
        """Stop; a call that hangs in the driver is left behind."""
        self._stream.forget(self._take)
        for task in self._tasks:
            task.cancel()
        self._driver_thread.shutdown(wait=False, cancel_futures=True)
        self._host_thread.shutdown(wait=False, cancel_futures=True)

    def _take(self, event: AnyEvent) -> None:
        self._foreign.take(event)
        if isinstance(event, Initialised) and not event.error:
            # What the process holds before it computes is its CUDA context, if only somebody looks now.
            self._made += 1
            self._made_some.set()

    async def devices(self) -> list[DeviceReading]:
        """Read the GPUs now and publish that."""
        made = self._made
        reading = await self._read()
        if made != self._made:
            # Under way while a process's devices were still being made, and told after they are: misleading.
            again = await self._read()
            reading = again._replace(devices=reading.devices + again.devices)
        for trouble in reading.troubles:
            self._stream.notice(*trouble)
        for device in reading.devices:
            self._stream.publish(device)
        readings = [self._foreign.translate(one) for one in reading.readings]
        self._tell_of_foreign(readings)
        self._on_gpus = {process.pid for one in readings for process in one.processes}
        for one in readings:
            self._stream.publish(one)
        if self.ending is not None:
            for one in readings:
                if one.used is not None:
                    self.ending.baseline.setdefault(one.index, one.used)
        return readings

    async def _read(self) -> Reading:
        call = asyncio.get_running_loop().run_in_executor(self._driver_thread, self._nvml.read)
        done, _ = await asyncio.wait([call], timeout=_DRIVER_HANGS_S)
        if not done:
            self._stream.notice(
                "driver", "error", "the NVIDIA driver does not answer", "see the kernel's log; a restart may be needed"
            )
        reading = await call
        self._stream.notice("driver", "info", "")
        return reading

    async def _keep_on(self, what: str, watch: Callable[[], Awaitable[None]]) -> None:
        while True:
            await self._attempt(what, watch)
            await asyncio.sleep(_AFTER_FAILURE_S)

    async def _attempt(self, what: str, watch: Callable[[], Awaitable[None]]) -> None:
        """A failure nobody foresaw costs a few seconds of readings, not the session."""
        try:
            await watch()
        except Exception as error:
            traceback.print_exc()
            self._stream.notice(
                f"readings {what}",
                "error",
                f"reading the {what} has failed and is tried again: {type(error).__name__}: {error}",
            )

    async def _watch_devices(self) -> None:
        while True:
            self._made_some.clear()
            await self.devices()
            try:
                await asyncio.wait_for(self._made_some.wait(), PACE_S)
            except asyncio.TimeoutError:
                pass

    async def _watch_processes(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self._woken.clear()
            sweep = await loop.run_in_executor(
                self._host_thread,
                self.host.sweep,
                frozenset(self._on_gpus),
                self._runs.number,
                frozenset(self._hooks.seen),
            )
            for process in sweep.processes:
                self._stream.publish(process)
            self._stream.publish(sweep.readings)
            alive = {reading.pid for reading in sweep.readings.processes}
            for pid in (*sweep.gone, *(pid for pid in self._hooks.connected() - alive if _is_gone(pid))):
                self._hooks.forget(pid)
            if self.ending is not None:
                self.ending.gpu_pids |= self._on_gpus & alive & self.host.of_runs()
            self._tell_strangers(sweep.unknown & self._on_gpus)
            self.swept()
            try:
                await asyncio.wait_for(self._woken.wait(), PACE_S)
                # A script that forks without pause is looked at no more than four times a second.
                await asyncio.sleep(PACE_S / 4)
            except asyncio.TimeoutError:
                pass

    def _tell_of_foreign(self, readings: list[DeviceReading]) -> None:
        untold = any(one.processes_missing == CANNOT_BE_TOLD for one in readings)
        text, remedy = (CANNOT_BE_TOLD, "start the container with --pid=host") if untold else ("", "")
        self._stream.notice("namespace", "warning" if untold else "info", text, remedy)

    def _tell_strangers(self, unknown: set[int]) -> None:
        """Processes on a GPU that cannot be looked at."""
        self._strange = {pid: self._strange.get(pid, 0) + 1 for pid in unknown}
        if any(count >= _STRANGE_AFTER for count in self._strange.values()):
            self._stream.notice(
                "hidden",
                "warning",
                "the driver lists processes that cannot be seen here: whose they are is not known",
                "where /proc is mounted with hidepid, root sees them",
            )
        elif not unknown:
            self._stream.notice("hidden", "info", "")


def _is_gone(pid: int) -> bool:
    stat = read_stat(pid)
    return stat is None or stat.zombie
