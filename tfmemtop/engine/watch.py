"""One session's watch: the runs of a script, and all sources of readings about them.

These parts are connected here, in one place, for screens, record and fit.
"""

import asyncio
import os
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING

from tfmemtop.engine.process.alerts import Alerts
from tfmemtop.engine.process.ending import Ending
from tfmemtop.engine.process.environment import INJECT, data_folder, hook_variables, mark, xla_folder
from tfmemtop.engine.process.launch import Launch
from tfmemtop.engine.process.output import OutputPump
from tfmemtop.engine.process.run import Prepared, Runs
from tfmemtop.engine.process.terminal import PseudoTerminal
from tfmemtop.engine.sources.cgroup import host_memory
from tfmemtop.engine.sources.chunk_maps import ChunkMaps
from tfmemtop.engine.sources.finding_windows import FindingWindows
from tfmemtop.engine.sources.hooks import Hooks
from tfmemtop.engine.sources.host import Host
from tfmemtop.engine.sources.map_requests import MapRequests
from tfmemtop.engine.sources.nvml import Nvml
from tfmemtop.engine.sources.outside.when_asked import WhenAsked
from tfmemtop.engine.sources.probes import Probes
from tfmemtop.engine.sources.readings import Readings
from tfmemtop.engine.sources.replays import Replays
from tfmemtop.engine.sources.terminal_reads import TerminalReads
from tfmemtop.engine.sources.windows import WindowReader
from tfmemtop.engine.sources.xla_reports import XlaReports
from tfmemtop.engine.stream.complaints import complain
from tfmemtop.engine.stream.folders import SessionFolder
from tfmemtop.engine.stream.recorder import Recorder
from tfmemtop.engine.stream.stream import Stream
from tfmemtop.engine.stream.thinner import Thinner
from tfmemtop.events import PutDown, Window
from tfmemtop.events.recording import Writer
from tfmemtop.events.unstarted import StartError, Unstarted, Why
from tfmemtop.limits import Machine, needs_gpus
from tfmemtop.settings import Settings

if TYPE_CHECKING:
    from tfmemtop.engine.exporter import Exporter

_NO_PROCESS = -1


class Watch:
    """An asynchronous context manager that watches while it is entered.

    Enter it in the main thread of a process that has no other children. A *guest* starts no script, and can be entered
    in any thread of any process. Everything that may fail comes before the script's start: :meth:`prepare` checks it,
    then :meth:`start` starts the script.
    """

    def __init__(
        self,
        stream: Stream,
        runs: Runs,
        ending: Ending,
        *,
        hooks: Hooks,
        readings: Readings,
        probes: Probes,
        replays: Replays,
        chunks: ChunkMaps,
        windows: WindowReader,
        finding_windows: FindingWindows,
        xla_reports: XlaReports,
        maps: MapRequests,
        alerts: Alerts,
        outside: WhenAsked,
        output: OutputPump | None = None,
        terminal_reads: TerminalReads | None = None,
        exporter: "Exporter | None" = None,
        guest: bool = False,
    ) -> None:
        self.runs = runs
        self._guest = guest
        self.ending = ending
        self.hooks = hooks
        self.readings = readings
        self.maps = maps
        self.alerts = alerts
        self._outside = outside
        self._stream = stream
        self._probes = probes
        self.replays = replays
        self._chunks = chunks
        self._windows = windows
        self._finding_windows = finding_windows
        self._xla_reports = xla_reports
        self._output = output
        self._terminal_reads = terminal_reads
        self._exporter = exporter
        self._recorder: Recorder | None = None
        self._reaped = asyncio.Event()

    async def __aenter__(self) -> "Watch":
        if not self._guest:
            asyncio.get_running_loop().add_signal_handler(signal.SIGCHLD, self._reap)
        if self._exporter is not None:
            self._exporter.begin()
        if self._output is not None:
            self._output.begin()
        self._probes.begin()
        self.replays.begin()
        self.maps.begin()
        self._chunks.begin()
        self._windows.begin()
        self._finding_windows.begin()
        self._xla_reports.begin()
        self.hooks.begin()
        self.readings.begin()
        if self._terminal_reads is not None:
            self._terminal_reads.begin()
        self.alerts.begin()
        return self

    async def __aexit__(self, *_: object) -> None:
        if not self._guest:
            asyncio.get_running_loop().remove_signal_handler(signal.SIGCHLD)
        _close(self._outside.close, self.replays.close)
        _close(self._probes.close, self._chunks.close)
        _close(self._windows.close, self._finding_windows.close, self._xla_reports.close)
        _close(self.readings.close, self.hooks.close)
        if self._terminal_reads is not None:
            _close(self._terminal_reads.close)
        # These come after the parts above, and the recording after the output, since they may still receive something
        # from the parts before them. They write files, so they wait side by side.
        writing = (part.close() for part in (self._output, self._recorder, self._exporter) if part is not None)
        for failed in await asyncio.gather(*writing, return_exceptions=True):
            if isinstance(failed, Exception):
                complain(error=failed)

    async def prepare(self, argv: list[str], settings: Settings, *, trace: bool = False) -> Prepared:
        """Check everything that can be checked before a run is started.

        With *trace*, all allocations of the run will be recorded.

        Raises:
            StartError: the command does not exist, or the driver does not answer.
            ValueError: the settings do not fit this machine.
        """
        return self.runs.prepare(argv, settings, await self._machine(settings), trace=trace)

    def start(self, run: Prepared) -> None:
        """Start the next run.

        Raises:
            StartError: the run cannot be started.
        """
        if self._output is not None:
            self._output.drain()
        self._xla_reports.run(asked=run.settings.xla_report, refused=run.no_report)
        self.runs.start(run)
        self.readings.hurry()

    def attach(self, pid: int, *, inject: bool = False) -> bool:
        """Start to read the process *pid* from outside, in place of the one that was read before.

        Return false if there is no such process. With *inject*, the hook is also put into that process's Python, and
        then reads the process.
        """
        if not self._outside.follow(pid):
            return False
        self.readings.adopt(pid)
        if inject:
            self._outside.inject()
        return True

    @property
    def recorded(self) -> bool:
        """Whether a recording is written."""
        return self._recorder is not None

    def record(self, opened: Callable[[], Writer], thinner: Thinner | None = None) -> Recorder:
        """Write the stream, or what a *thinner* leaves of it, from its beginning until the watch ends.

        *opened* is called in a thread, and returns where to write. Call this after the start of a run, so that a run
        that cannot be started overwrites no recording.
        """
        self._recorder = Recorder(self._stream, opened, thinner)
        self._recorder.begin()
        return self._recorder

    async def ended(self) -> None:
        """Wait until the script has ended."""
        while self.runs.running:
            self._reaped.clear()
            await self._reaped.wait()

    async def _machine(self, settings: Settings) -> Machine:
        try:
            gpus = await self.readings.gpus() if needs_gpus(settings) else []
        except asyncio.TimeoutError:
            raise StartError(Unstarted(Why.DRIVER_SILENT)) from None
        memory = host_memory()
        return Machine(
            uuids=[gpu.uuid for gpu in gpus],
            totals=[gpu.total for gpu in gpus],
            host_memory=memory.total,
            host_memory_of=memory.owner,
        )

    def _reap(self) -> None:
        try:
            self.runs.reap()
        finally:
            self.readings.hurry()
            self._reaped.set()


def open_watch(
    stream: Stream,
    launch: Launch,
    folder: SessionFolder,
    *,
    terminal: PseudoTerminal | None = None,
    pump: OutputPump | None = None,
    output: int | None = None,
    maps_every_s: float | None = None,
    nvml: Nvml | None = None,
    helper: int = 0,
    exporter: "Exporter | None" = None,
    guest: bool = False,
) -> Watch:
    """Return the watch over runs of ``launch.argv``, with all its parts.

    The script's stdio is *terminal*, which *pump* reads; or the file descriptor *output*; or that of this process.
    With *maps_every_s*, all memory maps are read at that interval in seconds, whether or not a screen requests them.
    Without *nvml*, this machine's own library is used. *helper* is the number of a child of this process that does not
    belong to the script. The *exporter* receives the stream too. A *guest* runs in another part's process, such as a
    screen's, and no child of that process belongs to the script.
    """
    data, marked = data_folder(folder.hook_socket), mark(folder.hook_socket)
    chunks = ChunkMaps(stream, data)

    def take_file(put_down: PutDown) -> None:
        (windows if isinstance(put_down, Window) else chunks).take(put_down)

    hooks = Hooks(stream, folder.hooks, take_file)
    windows = WindowReader(stream, hooks, data)
    probes = Probes(stream, hooks, enabled=launch.probe)
    replays = Replays(stream)

    def ours() -> frozenset[int]:
        return probes.sessions() | outside.sessions() | replays.sessions()

    kernel = launch.kernel.pid if launch.kernel else None
    root = _NO_PROCESS if guest else os.getpid()
    readings = Readings(stream, hooks, Host(root, INJECT, marked, kernel, helper), ours, nvml)
    telling = hook_variables(launch, folder.hook_socket)
    outside = WhenAsked(stream, data, chunks.take, launch.interval_s, telling)
    xla_reports = XlaReports(stream, xla_folder(folder.hook_socket), lambda: runs.pid)
    drains = [hooks.drain, chunks.drain, windows.drain, xla_reports.drain]
    if pump is not None:
        drains.insert(0, pump.drain)
    runs = Runs(stream, launch, hook_socket=folder.hook_socket, terminal=terminal, output=output, drains=drains)
    return Watch(
        stream,
        runs,
        Ending(stream, runs, marked, readings.devices, ours),
        hooks=hooks,
        readings=readings,
        probes=probes,
        replays=replays,
        chunks=chunks,
        windows=windows,
        finding_windows=FindingWindows(stream, hooks),
        xla_reports=xla_reports,
        maps=MapRequests(
            stream, lambda pid, asked: outside.send(pid, asked) or hooks.send(pid, asked), every_s=maps_every_s
        ),
        alerts=Alerts(stream, launch, runs),
        outside=outside,
        output=pump,
        terminal_reads=TerminalReads(stream, terminal.master, terminal.slave, readings.of_runs) if terminal else None,
        exporter=exporter,
        guest=guest,
    )


def _close(*parts: Callable[[], None]) -> None:
    """Close all *parts*. If one raises, log that and go on, so that the others are closed and the exit code is kept."""
    for close in parts:
        try:
            close()
        except Exception:
            complain()
