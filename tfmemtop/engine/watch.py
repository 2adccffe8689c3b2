"""One session's watch: the runs of a script, and all sources of readings about them.

These parts are connected here, in one place, for screens and record.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from tfmemtop.engine.process.alerts import Alerts
from tfmemtop.engine.process.ending import Ending
from tfmemtop.engine.process.keeper import Keeper
from tfmemtop.engine.process.launch import INJECT, Launch, StartError, data_folder, mark, readable, xla_folder
from tfmemtop.engine.process.output import OutputPump
from tfmemtop.engine.process.pseudo_terminal import PseudoTerminal
from tfmemtop.engine.process.run import Prepared, Runs
from tfmemtop.engine.sources.allocator_lines import AllocatorLines
from tfmemtop.engine.sources.cgroup import host_memory
from tfmemtop.engine.sources.chunk_maps import ChunkMaps
from tfmemtop.engine.sources.hooks import KEPT_PACE_S, RECORDED_PACE_S, Hooks, MapRequests
from tfmemtop.engine.sources.host import Host, describe_session
from tfmemtop.engine.sources.nvml import Nvml
from tfmemtop.engine.sources.probes import Probes
from tfmemtop.engine.sources.processes import read_command, read_environment
from tfmemtop.engine.sources.readings import Readings
from tfmemtop.engine.sources.replays import Replays
from tfmemtop.engine.sources.source import Source
from tfmemtop.engine.sources.windows import FindingWindows, WindowReader
from tfmemtop.engine.sources.xla_reports import XlaReports
from tfmemtop.engine.stream import Stream
from tfmemtop.engine.stream.complaints import complain
from tfmemtop.engine.stream.folders import SessionFolder
from tfmemtop.engine.stream.recorder import Recorder, Thinner
from tfmemtop.events import PutDown, Window
from tfmemtop.events.recording import Writer
from tfmemtop.limits import Machine, needs_gpus
from tfmemtop.settings import Settings

if TYPE_CHECKING:
    from tfmemtop.engine.metrics import Exporter
    from tfmemtop.engine.sources.outside.following import FromOutside

_NO_PROCESS = -1
SWITCH_S = 0.0005
"""The longest time for which a thread that computes keeps Python's lock while another one waits for it.

Windows of allocations and XLA's reports are read in threads, and the readings must not wait for them. Python's own 5 ms
would delay each reading by as much. A lower priority would not help: on a busy machine, such a thread would hold the
lock while it waits for a processor.
"""


class Watch:
    """An asynchronous context manager that watches while it is entered.

    Enter it in the main thread of a process that has no other children. A session that ends with its screen starts no
    script, and can be entered in any thread of any process. Everything that may fail comes before the script's start:
    :meth:`prepare` checks it, then :meth:`start` starts the script.
    """

    def __init__(
        self,
        launch: Launch,
        folder: SessionFolder,
        *,
        output_path: str | None = None,
        terminal: PseudoTerminal | None = None,
        keeper: Keeper | None = None,
        nvml: Nvml | None = None,
        helper: int = 0,
    ) -> None:
        """Watch runs of ``launch.argv``.

        The script's stdio is *terminal*, which *keeper* reads and keeps in the file *output_path*; or that of this
        process. Without *nvml*, this machine's own library is used. *helper* is the number of a child of this process
        that does not belong to the script.

        Raises:
            StartError: the metrics cannot be exported as requested.
        """
        self.stream, self.exporter = _open_stream(launch, folder, output_path)
        stream = self.stream
        data, marked = data_folder(folder.hook_socket), mark(folder.hook_socket)
        self._launch = launch
        self._folder = folder
        self._guest = launch.ends_with_screen
        self._output = OutputPump(stream, terminal, keeper) if terminal and keeper else None
        self._recorder: Recorder | None = None
        self._reaped = asyncio.Event()
        self._stack = AsyncExitStack()

        self.hooks = Hooks(stream, folder.hooks, self._take_file)
        own_sessions: set[int] = set()  # process sessions of tfmemtop's own processes beside the script
        probes = Probes(stream, self.hooks, own_sessions, enabled=launch.probe)
        self.maps = MapRequests(stream, self._send, every_s=_maps_every_s(launch))
        self._chunks = ChunkMaps(stream, data)
        self._windows = WindowReader(stream, self.hooks.send, data)
        self._xla_reports = XlaReports(stream, xla_folder(folder.hook_socket))
        kernel = launch.kernel.pid if launch.kernel else None
        host = Host(_NO_PROCESS if self._guest else os.getpid(), INJECT, marked, kernel, helper)
        self.readings = Readings(stream, self.hooks, host, own_sessions, nvml)
        self._outside: FromOutside | None = None
        sources: list[Source] = [
            *(self.hooks, probes, Replays(stream, own_sessions), self.maps, self._chunks, self._windows),
            *(AllocatorLines(stream, data), FindingWindows(stream, self.hooks.send), self._xla_reports, self.readings),
        ]
        drains = [part.drain for part in (self._output, *sources) if part is not None]
        self.runs = Runs(stream, launch, hook_socket=folder.hook_socket, terminal=terminal, drains=drains)
        # With a host of its own, as that of the readings is used in their thread.
        self.ending = Ending(stream, self.runs, Host(os.getpid(), INJECT, marked), self.readings.devices, own_sessions)
        self.alerts = Alerts(stream, launch, self.runs)
        self._sources = [*sources, self.alerts]

    async def __aenter__(self) -> "Watch":
        async with AsyncExitStack() as stack:
            # What writes files comes first and is closed last: it may still receive something from the sources.
            stack.push_async_callback(self._close_files)
            for writing in (self.exporter, self._output):
                if writing is not None:
                    writing.begin()
            for source in self._sources:
                stack.enter_context(_begun(source))
            sys.setswitchinterval(SWITCH_S)
            if not self._guest:
                loop = asyncio.get_running_loop()
                loop.add_signal_handler(signal.SIGCHLD, self._reap)
                stack.callback(loop.remove_signal_handler, signal.SIGCHLD)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.alerts.started()
        await self._stack.aclose()

    async def _close_files(self) -> None:
        """Close what writes files. It may have to wait for a file system, so all of it waits side by side."""
        writing = (part.close() for part in (self._output, self._recorder, self.exporter) if part is not None)
        for failed in await asyncio.gather(*writing, return_exceptions=True):
            if isinstance(failed, Exception):
                complain(error=failed)

    def _take_file(self, put_down: PutDown) -> None:
        if isinstance(put_down, Window):
            self._windows.take(put_down)
        else:
            self._chunks.take(put_down)

    def _send(self, pid: int, command: dict[str, Any]) -> bool:
        if self._outside is not None and self._outside.send(pid, command):
            return True
        return self.hooks.send(pid, command)

    async def prepare(self, argv: list[str], settings: Settings) -> Prepared:
        """Check everything that can be checked before a run is started.

        Raises:
            StartError: the command does not exist, or the driver does not answer.
            ValueError: the settings do not fit this machine.
        """
        return self.runs.prepare(argv, settings, await self._machine(settings))

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

    def type(self, text: str) -> None:
        """Type *text* into the script's terminal, if there is one."""
        if self._output is not None:
            self._output.write(text)

    def attach(self, pid: int) -> bool:
        """Start to read the process *pid* from outside, in place of the one that was read before.

        Return false if there is no such process.
        """
        if self._outside is None:
            from tfmemtop.engine.sources.outside.following import FromOutside  # most sessions do not need it

            data = data_folder(self._folder.hook_socket)
            self._outside = FromOutside(self.stream, data, self._chunks.take, self._launch.interval_s)
            self._stack.enter_context(_begun(self._outside))
        if not self._outside.follow(pid):
            return False
        self.readings.adopt(pid)
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
        self._recorder = Recorder(self.stream, opened, thinner)
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
            raise StartError("the NVIDIA driver does not answer: the settings cannot be checked", 1) from None
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


def _maps_every_s(launch: Launch) -> float | None:
    """Return the seconds between two recorded memory maps; ``None`` if there are only those that a screen requests."""
    return RECORDED_PACE_S if launch.record else KEPT_PACE_S if launch.keep else None


@contextmanager
def _begun(source: Source) -> Iterator[None]:
    """Begin *source*, and close it at the end. An error then is logged, so that the exit code is kept."""
    source.begin()
    try:
        yield
    finally:
        try:
            source.close()
        except Exception:
            complain()


def _open_stream(launch: Launch, folder: SessionFolder, output_path: str | None) -> "tuple[Stream, Exporter | None]":
    """Return the stream of a session, which begins with its description, and the exporter of its metrics, if any.

    Raises:
        StartError: the metrics cannot be exported as requested.
    """
    stream = Stream()
    session = describe_session(
        folder.id,
        watched_command(launch),
        _environment(launch),
        output_path=output_path,
        interval_s=launch.interval_s,
        holders_interval_s=launch.holders_interval_s,
    )
    stream.publish(session)
    if launch.export is None:
        return stream, None
    from tfmemtop.engine.metrics import open_exporter  # here, since most sessions do not need it

    return stream, open_exporter(stream, launch.export, session)


def watched_command(launch: Launch) -> list[str]:
    """Return the command line that is watched: the script's, or that of the process that is read from outside."""
    if launch.attach is not None:
        return read_command(launch.attach)
    return [readable(argument) for argument in launch.argv]


def _environment(launch: Launch) -> dict[str, str]:
    if launch.attach is None:
        return launch.environment
    try:
        return read_environment(launch.attach)
    except OSError:
        return {}  # the process has ended, or belongs to another user: its placement is not known
