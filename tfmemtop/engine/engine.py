"""The live engine: a watch, a terminal and a server.

It carries out the commands of screens, and ends when it is no longer needed.
"""

import asyncio
import os
import signal
from contextlib import AsyncExitStack
from functools import partial

from tfmemtop.engine.opening import open_stream, unstarted
from tfmemtop.engine.process.keeper import Keeper
from tfmemtop.engine.process.launch import Launch
from tfmemtop.engine.process.output import OutputPump
from tfmemtop.engine.process.run import Prepared
from tfmemtop.engine.process.terminal import PseudoTerminal
from tfmemtop.engine.sources.map_requests import KEPT_PACE_S, RECORDED_PACE_S
from tfmemtop.engine.sources.processes import has_tensorflow, read_environment, session_of
from tfmemtop.engine.stream.complaints import complain, shorten
from tfmemtop.engine.stream.folders import SessionFolder
from tfmemtop.engine.stream.kept_sessions import open_recording
from tfmemtop.engine.stream.kernel_starts import choose
from tfmemtop.engine.stream.server import Reader, Server
from tfmemtop.engine.stream.thinner import Thinner
from tfmemtop.engine.watch import Watch
from tfmemtop.events import (
    Attach,
    CensusNow,
    Command,
    Environment,
    Event,
    ForNextStart,
    HoldersNow,
    Input,
    Level,
    MapWanted,
    NoticeKind,
    ProcessReadings,
    ReadEnvironment,
    Relaunch,
    Resize,
    Run,
    RunEnd,
    Signal,
    Stop,
    Terminal,
    Upcoming,
)
from tfmemtop.events.unstarted import StartError, Unstarted, Why
from tfmemtop.settings import Settings

LINGER_S = 2.0
"""How long an engine waits for another reader once it is no longer needed."""
UNSEEN_S = 3600.0
"""How long an engine waits for a reader if the run ended while no screen was connected."""
UNREAD_S = 10.0
"""How long an engine that only watches waits for its first reader."""
_LOG_S = 60.0


class Engine:
    """One session, from its first run until the last reader has left.

    An asynchronous context manager. It watches while it is entered, and serves readers from :meth:`begin` on.
    """

    def __init__(
        self,
        launch: Launch,
        folder: SessionFolder,
        output_path: str | None = None,
        terminal: PseudoTerminal | None = None,
        keeper: Keeper | None = None,
    ) -> None:
        """The script's output is kept in the file *output_path*.

        Without a *terminal* and a *keeper*, the engine is a guest in the process of a screen. It then starts no script,
        and leaves signals and child processes to that process. It runs until :meth:`leave` or a command of a screen
        ends it.

        Raises:
            StartError: the metrics cannot be exported as requested.
        """
        stream, exporter = open_stream(launch, folder, output_path)
        stream.publish(Terminal(t=stream.now(), columns=launch.columns, rows=launch.rows))
        self.stream = stream
        self._launch = launch
        self._session = folder.id
        self._watches_only = not launch.argv
        self._kernel = launch.kernel
        self._task = launch.task
        self._argv = launch.argv
        self._terminal = terminal
        self._loop = asyncio.get_running_loop()
        self._output = OutputPump(stream, terminal, keeper) if terminal and keeper else None
        maps_every_s = RECORDED_PACE_S if launch.record else KEPT_PACE_S if launch.keep else None
        self.watch = Watch(
            stream,
            launch,
            folder,
            terminal=terminal,
            pump=self._output,
            maps_every_s=maps_every_s,
            exporter=exporter,
            guest=terminal is None,
        )
        self._server = Server(
            stream, folder.readers, take=self._heed, left=self.watch.maps.forget, changed=self._consider
        )
        self._exit = AsyncExitStack()
        self._stopping: asyncio.Task[None] | None = None
        self._preparing: asyncio.Task[None] | None = None
        self._choosing: asyncio.Task[None] | None = None
        self._next: Prepared | None = None
        self._quit = False
        self._done = asyncio.Event()
        self._linger: asyncio.TimerHandle | None = None
        self._log = folder.log
        self._next_look: asyncio.TimerHandle | None = None
        self._seen_end = False

    async def __aenter__(self) -> "Engine":
        async with AsyncExitStack() as stack:
            # Readers are disconnected last: a reader whose connection has ended finds a complete recording.
            stack.push_async_callback(self._server.close)
            await stack.enter_async_context(self.watch)
            self._exit = stack.pop_all()
        self._look_at_log()
        if self._terminal is not None:
            # Handlers, not SIG_IGN: a child process inherits ignored signals.
            for number in (signal.SIGHUP, signal.SIGINT):
                self._loop.add_signal_handler(number, lambda: None)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._next_look is not None:
            self._next_look.cancel()
        await self._exit.aclose()

    def _look_at_log(self) -> None:
        shorten(self._log)
        self._next_look = self._loop.call_later(_LOG_S, self._look_at_log)

    def begin(self) -> None:
        """Start to serve readers and to handle SIGTERM, which ends the run and then the engine.

        A kernel belongs to Jupyter: there, SIGTERM ends only the engine. In a Slurm step, Slurm sends SIGTERM to all
        processes of the step. The script receives it too and may need some time, so the engine ignores it.
        """
        if self._terminal is None:
            pass  # the screen's process handles signals
        elif self._kernel:
            self._loop.add_signal_handler(signal.SIGTERM, self._done.set)
        elif self._task:
            self._loop.add_signal_handler(signal.SIGTERM, lambda: None)
        else:
            self._loop.add_signal_handler(signal.SIGTERM, self._obey, Stop(quit=True))
        self.stream.listen(self._follow)
        self._server.begin()

    def keep(self) -> None:
        """Start the recording that is kept of each session, unless the user does without it, or it has begun.

        A second process that the same session reads goes into the same recording.
        """
        if self._launch.keep and not self.watch.recorded:
            self.watch.record(partial(open_recording, self._session), Thinner())

    def leave(self) -> None:
        """End the engine. A process that is read from outside goes on."""
        self._done.set()

    async def done(self) -> None:
        """Wait until the engine is no longer needed."""
        self._consider()
        await self._done.wait()

    def _follow(self, event: Event) -> None:
        match event:
            case Run():
                self._seen_end = False
            case RunEnd():
                self._seen_end = self._server.readers > 0
                self._consider()
            case ProcessReadings():
                self._consider()
            case _:
                pass

    def _heed(self, reader: Reader, command: Command) -> None:
        if isinstance(command, MapWanted):
            self.watch.maps.want(reader, command)
        elif isinstance(command, Stop) and self._terminal is None and self._server.readers > 1:
            self._server.dismiss(reader)  # there is no run to stop: only this screen is disconnected
        else:
            self._obey(command)

    def _obey(self, command: Command) -> None:
        match command:
            case Input() if self._output is not None:
                self._output.write(command.text)
            case Resize():
                self._resize(command.columns, command.rows)
            case Signal():
                self._signal(command.pids, command.signal)
            case ReadEnvironment():
                self._read_environment(command.pid)
            case Attach():
                if not command.if_tensorflow or has_tensorflow(command.pid):
                    self._attach(command.pid)
            case CensusNow():
                self.watch.hooks.send(command.pid, {"do": "census", "tensors": command.tensors})
            case HoldersNow():
                self.watch.hooks.send(command.pid, {"do": "holders"})
            case ForNextStart():
                self._choosing = self._loop.create_task(self._choose(command.settings))
            case Relaunch() if self._kernel:
                self.stream.notice("relaunch", NoticeKind.KERNEL_IS_JUPYTERS, Level.ERROR)
            case Relaunch() if self._terminal is None:
                self._not_relaunched(StartError(Unstarted(Why.NO_COMMAND)))
            case Relaunch():
                self._forget_next()
                self._preparing = self._loop.create_task(self._relaunch(command))
            case Stop():
                self._quit = self._quit or command.quit
                self._forget_next()
                self._end(command.grace_s)
            case _:
                pass  # a command for a terminal, and there is none

    def _attach(self, pid: int) -> None:
        if self._watches_only and self.watch.attach(pid):
            self.stream.withdraw("attach")
            self.keep()
        else:
            kind = NoticeKind.ATTACH_NO_PROCESS if self._watches_only else NoticeKind.ATTACH_BESIDE_SCRIPT
            self.stream.notice("attach", kind, Level.WARNING, about=pid)

    def _forget_next(self) -> None:
        self._next = None
        if self._preparing is not None:
            self._preparing.cancel()
            self._preparing = None

    async def _relaunch(self, command: Relaunch) -> None:
        try:
            self._next = await self.watch.prepare(command.argv, command.settings)
        except Exception as error:
            # The new run cannot be started, so the present one is not ended.
            if not isinstance(error, StartError | ValueError):
                complain()
            self._not_relaunched(error)
        else:
            self.stream.withdraw("relaunch")
            self._end(command.grace_s)
        self._preparing = None
        self._consider()

    async def _choose(self, settings: Settings) -> None:
        """Store *settings* for the kernel's next start, if they fit this machine."""
        if self._kernel is None:
            return
        try:
            await self.watch.prepare(self._argv, settings)
            choose(self._kernel.shared, settings)
        except (StartError, ValueError, OSError) as error:
            self.stream.notice("relaunch", NoticeKind.NOT_CHOSEN, Level.ERROR, unstarted=unstarted(error))
        else:
            self.stream.withdraw("relaunch")
            self.stream.publish(Upcoming(t=self.stream.now(), settings=settings))

    def _not_relaunched(self, error: Exception) -> None:
        self.stream.notice("relaunch", NoticeKind.NOT_RELAUNCHED, Level.ERROR, unstarted=unstarted(error))

    def _end(self, grace_s: float) -> None:
        if self._stopping is not None and not self._stopping.done():
            self.watch.ending.hasten(grace_s)
            return
        self._stopping = self._loop.create_task(self._end_and_go_on(grace_s))

    async def _end_and_go_on(self, grace_s: float) -> None:
        try:
            if self.watch.runs.number:
                await self.watch.ending.end(grace_s)
            run, self._next = self._next, None
            if run is not None and not self._quit:
                self.watch.start(run)
        except StartError as error:
            self._not_relaunched(error)
        except Exception as error:
            complain()
            self.stream.notice("ending", NoticeKind.ENDING_FAILED, Level.ERROR, f"{type(error).__name__}: {error}")
        finally:
            self._stopping = None
            self._consider()

    def _resize(self, columns: int, rows: int) -> None:
        columns, rows = min(max(columns, 1), 9999), min(max(rows, 1), 9999)
        if self._terminal is not None and (columns, rows) != (self._terminal.columns, self._terminal.rows):
            self._terminal.resize(columns, rows)
            self.stream.publish(Terminal(t=self.stream.now(), columns=columns, rows=rows))

    def _signal(self, pids: list[int], number: int) -> None:
        troubles = [trouble for pid in pids if (trouble := self._signal_one(pid, number))]
        if troubles:
            self.stream.notice("signal", NoticeKind.SIGNAL_FAILED, Level.ERROR, "; ".join(troubles))
        else:
            self.stream.withdraw("signal")

    def _signal_one(self, pid: int, number: int) -> str:
        try:
            self.watch.readings.signal(pid, number)
        except OSError as error:
            return f"{pid}: {error.strerror}"
        except ValueError as error:
            return f"{pid}: {error}"
        return ""

    def _read_environment(self, pid: int) -> None:
        try:
            found = Environment(t=self.stream.now(), pid=pid, variables=read_environment(pid))
        except OSError as error:
            found = Environment(t=self.stream.now(), pid=pid, variables={}, error=error.strerror or str(error))
        self.stream.publish(found)

    def _consider(self) -> None:
        """End the engine if a command requested it. End it after a while if nothing runs and no reader is connected."""
        if self._quit and self._stopping is None:
            self._done.set()
        elif self._terminal is None:
            pass  # the screen's process ends this engine
        elif self._server.readers or self._stopping or self._preparing or self._busy():
            if self._linger is not None:
                self._linger.cancel()
                self._linger = None
            if self._server.readers and not self.watch.runs.running:
                self._seen_end = True
        elif self._linger is None:
            # The session of a kernel remains in its recording, so the wait is short. When Jupyter ends the kernel, no
            # process of tfmemtop may be left.
            wait = LINGER_S if self._server.ever or self._kernel else UNREAD_S
            if self.watch.runs.number and not self._seen_end and not self._kernel:
                wait = UNSEEN_S
            self._linger = self._loop.call_later(wait, self._done.set)

    def _busy(self) -> bool:
        """Return whether the script runs, or a process that it left behind in our process session.

        At the end of the engine, such a process would receive SIGHUP.
        """
        if self.watch.runs.running:
            return True
        ours = os.getsid(0)
        return any(session_of(pid) == ours for pid in self.watch.readings.of_runs())
