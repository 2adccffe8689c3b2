"""Reads the GPUs and the processes once a second, in threads, and publishes the readings in order."""

import asyncio
import errno
import os
from collections.abc import Awaitable, Callable, Mapping, Set

from tfmemtop.engine.own_thread import OwnThread
from tfmemtop.engine.sources.foreign import Foreign
from tfmemtop.engine.sources.hooks import Hooks
from tfmemtop.engine.sources.host import Host, Shown
from tfmemtop.engine.sources.nvml import Nvml, NvmlReading
from tfmemtop.engine.sources.processes import is_alive
from tfmemtop.engine.sources.source import Source
from tfmemtop.engine.stream import Stream
from tfmemtop.engine.stream.complaints import complain
from tfmemtop.events import Device, DeviceReading, Event, Initialised, Level, NoticeKind, Run, SharesMissing

PACE_S = 1.0
_DRIVER_HANGS_S = 5.0
_STRANGE_AFTER = 3
_AFTER_FAILURE_S = 5.0

DRIVER_WAIT_S = 10.0
"""Seconds for which an answer of the driver is waited for."""


class Readings(Source):
    """Polls two sources: the GPUs and the processes. A driver that hangs does not delay the reading of processes.

    NVML is used in a thread of its own, and *host* in another. Both receive what they need as values. *apart* are
    the process sessions (``setsid``) whose processes do not belong to the script.
    """

    def __init__(
        self,
        stream: Stream,
        hooks: Hooks,
        host: Host,
        apart: Set[int],
        nvml: Nvml | None = None,
        foreign: Foreign | None = None,
    ) -> None:
        super().__init__(stream)
        self._hooks = hooks
        self._host = host
        self._apart = apart
        self._nvml = nvml or Nvml()
        self._foreign = foreign or Foreign(self.of_runs)
        self._driver_thread = OwnThread("nvml")
        self._host_thread = OwnThread("host")
        self._run = 0
        self._adopted: int | None = None
        self._gpus: dict[int, Device] = {}
        self._answered = asyncio.Event()  # set after the first reading, also if there is no driver
        self._shown: Mapping[int, Shown] = {}
        self._on_gpus: set[int] = set()
        self._strange: dict[int, int] = {}
        self._woken = asyncio.Event()
        self._made = 0  # how often a process has reported that TensorFlow's devices are there
        self._made_some = asyncio.Event()

    def begin(self) -> None:
        """Start to poll both sources. Call it in the running event loop."""
        super().begin()
        self._keep_doing(self._keep_on(NoticeKind.GPUS_UNREAD, self._watch_devices))
        self._keep_doing(self._keep_on(NoticeKind.PROCESSES_UNREAD, self._watch_processes))

    def hurry(self) -> None:
        """Look at the processes now, since something has changed."""
        self._woken.set()

    def adopt(self, pid: int) -> None:
        """Treat process *pid* and its descendants as the run's, although this process did not start it."""
        self._adopted = pid
        self.hurry()

    def of_runs(self) -> set[int]:
        """Return the runs' processes, as of the last look."""
        return {pid for pid, shown in self._shown.items() if shown.run is not None}

    def signal(self, pid: int, number: int) -> None:
        """Send the signal *number* to a process that is shown.

        Raises:
            ProcessLookupError: the process is not shown, or has ended.
            OSError: the kernel refuses the signal.
        """
        shown = self._shown.get(pid)
        if shown is None or not shown.process.is_alive():
            raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH))
        os.kill(pid, number)

    async def gpus(self) -> list[Device]:
        """Return the GPUs in NVML's order, as of the last reading. If there is none yet, wait for the first.

        Raises:
            asyncio.TimeoutError: the driver does not answer within 10 seconds.
        """
        await asyncio.wait_for(self._answered.wait(), DRIVER_WAIT_S)
        return [self._gpus[index] for index in sorted(self._gpus)]

    def close(self) -> None:
        """Stop. A call that hangs in the driver is not waited for."""
        super().close()
        self._driver_thread.shutdown(cancel_futures=True)
        self._host_thread.shutdown(cancel_futures=True)

    def on_event(self, event: Event) -> None:
        """Handle an event of the stream."""
        self._foreign.take(event)
        if isinstance(event, Run):
            self._run = event.run
        elif isinstance(event, Initialised) and not event.error:
            # A reading now shows the CUDA context alone: the process has not computed yet.
            self._made += 1
            self._made_some.set()

    async def devices(self) -> list[DeviceReading]:
        """Read the GPUs now, publish the readings and return them."""
        made = self._made
        reading = await self._read()
        if made != self._made:
            # The reading began before the process's devices were there, and would be published as if it showed them.
            again = await self._read()
            reading = again._replace(devices=reading.devices + again.devices)
        for trouble in reading.troubles:
            self._stream.notice(trouble.key, trouble.kind, trouble.level, trouble.detail, about=trouble.about)
        for device in reading.devices:
            self._gpus[device.index] = device
            self._stream.publish(device)
        self._answered.set()
        readings = [self._foreign.translate(one) for one in reading.readings]
        self._tell_of_foreign(readings)
        self._on_gpus = {process.pid for one in readings for process in one.processes}
        for one in readings:
            self._stream.publish(one)
        return readings

    async def _read(self) -> NvmlReading:
        call = asyncio.get_running_loop().run_in_executor(self._driver_thread, self._nvml.read, self._stream.now())
        done, _ = await asyncio.wait([call], timeout=_DRIVER_HANGS_S)
        if not done:
            self._stream.notice("driver", NoticeKind.DRIVER_SILENT, Level.ERROR)
        reading = await call
        self._stream.withdraw("driver")
        return reading

    async def _keep_on(self, what: NoticeKind, watch: Callable[[], Awaitable[None]]) -> None:
        """Run *watch* until the end. An unforeseen failure costs a few seconds of readings, but not the session."""
        while not self._closed:
            try:
                await watch()
            except Exception as error:
                complain()
                self._stream.notice(f"readings {what.value}", what, Level.ERROR, f"{type(error).__name__}: {error}")
            await asyncio.sleep(_AFTER_FAILURE_S)

    async def _watch_devices(self) -> None:
        while not self._closed:
            self._made_some.clear()
            await self.devices()
            try:
                await asyncio.wait_for(self._made_some.wait(), PACE_S)
            except asyncio.TimeoutError:
                pass

    async def _watch_processes(self) -> None:
        loop = asyncio.get_running_loop()
        while not self._closed:
            self._woken.clear()
            sweep = await loop.run_in_executor(
                self._host_thread,
                self._host.sweep,
                frozenset(self._on_gpus),
                self._run,
                frozenset(self._hooks.seen),
                frozenset(self._apart),
                self._stream.now(),
                self._adopted,
            )
            self._shown = sweep.shown
            for process in sweep.processes:
                self._stream.publish(process)
            self._stream.publish(sweep.readings)
            alive = {reading.pid for reading in sweep.readings.processes}
            for pid in (*sweep.gone, *(pid for pid in self._hooks.connected() - alive if not is_alive(pid))):
                self._hooks.forget(pid)
            self._tell_strangers(sweep.unknown & self._on_gpus)
            try:
                await asyncio.wait_for(self._woken.wait(), PACE_S)
                # A script that forks without pause is looked at no more than four times a second.
                await asyncio.sleep(PACE_S / 4)
            except asyncio.TimeoutError:
                pass

    def _tell_of_foreign(self, readings: list[DeviceReading]) -> None:
        if any(one.processes_missing is SharesMissing.NUMBERED_OTHERWISE for one in readings):
            self._stream.notice("namespace", NoticeKind.PROCESSES_RENUMBERED)
        else:
            self._stream.withdraw("namespace")

    def _tell_strangers(self, unknown: set[int]) -> None:
        """Publish a notice if a process on a GPU cannot be looked at several times in a row.

        *unknown* are these processes of the present look.
        """
        self._strange = {pid: self._strange.get(pid, 0) + 1 for pid in unknown}
        if any(count >= _STRANGE_AFTER for count in self._strange.values()):
            self._stream.notice("hidden", NoticeKind.PROCESSES_HIDDEN)
        elif not unknown:
            self._stream.withdraw("hidden")
