"""The engine: puts the rooms' parts together, obeys commands, and knows when it is no longer needed."""

import asyncio
import os
import signal
import socket
import traceback
from collections.abc import Callable
from pathlib import Path

from tfmemtop.engine.chunks import ChunkMaps
from tfmemtop.engine.dumps import Dumps
from tfmemtop.engine.ending import Ending
from tfmemtop.engine.hooks import Hooks
from tfmemtop.engine.maps import Maps
from tfmemtop.engine.output import OutputPump
from tfmemtop.engine.probe import Probes
from tfmemtop.engine.procfs import read_environment, read_stat
from tfmemtop.engine.readings import Readings
from tfmemtop.engine.recorder import Recorder
from tfmemtop.engine.run import Runs, StartError
from tfmemtop.engine.server import Reader, Server
from tfmemtop.engine.stream import Stream
from tfmemtop.engine.terminal import PseudoTerminal
from tfmemtop.events import (
    AnyCommand,
    CensusNow,
    Environment,
    Input,
    MapWanted,
    ReadEnvironment,
    Relaunch,
    Resize,
    Signal,
    Stop,
    Terminal,
)

LINGER_S = 2.0
"""How long an engine waits for another reader once it is no longer needed."""
UNSEEN_S = 3600.0
"""How long it keeps the picture of a run that ended while nobody looked."""
UNREAD_S = 10.0
"""How long one that only watches waits for its first reader."""


class Engine:
    """One session, from its first run to the last reader's leaving."""

    def __init__(
        self,
        stream: Stream,
        runs: Runs,
        *,
        hook_listener: socket.socket,
        reader_listener: socket.socket,
        terminal: PseudoTerminal,
        output_path: Path | None,
        recorder: Recorder | None = None,
        probe: bool = True,
    ) -> None:
        self._stream = stream
        self._runs = runs
        self._terminal = terminal
        self._recorder = recorder
        self._hooks = Hooks(stream, hook_listener)
        self._server = Server(stream, reader_listener, self._heed)
        self._output = OutputPump(stream, terminal, output_path)
        self._readings = Readings(stream, runs, self._hooks)
        self._probes = Probes(stream, self._hooks, self._readings.host, enabled=probe)
        self._dumps = Dumps(stream, self._hooks, runs.dumps)
        self._chunks = ChunkMaps(stream, self._hooks, runs.dumps)
        self._maps = Maps(stream, self._hooks, recording=recorder is not None)
        self._ending = self._readings.ending = Ending(stream, runs, self._readings.devices)
        self._ending.apart = self._readings.host.apart
        self._stopping: asyncio.Task[None] | None = None
        self._next: Relaunch | None = None
        self._quit = False
        self._done = asyncio.Event()
        self._linger: asyncio.TimerHandle | None = None
        self._seen_end = False

    async def serve(self, start: Callable[[], None]) -> None:
        """Run until nobody needs the engine any more; *start* starts the first run, once all else is ready.

        Raises:
            StartError: it cannot be started.
        """
        self._loop = asyncio.get_running_loop()
        self._runs.before_end = self._before_end
        self._loop.add_signal_handler(signal.SIGCHLD, self._reap)
        # Handlers, not SIG_IGN: what is ignored stays ignored in the script.
        for number in (signal.SIGHUP, signal.SIGINT):
            self._loop.add_signal_handler(number, lambda: None)
        self._loop.add_signal_handler(signal.SIGTERM, self._obey, Stop(quit=True))
        self._output.begin()
        self._probes.begin()
        self._maps.begin()
        self._dumps.begin()
        self._chunks.begin()
        self._hooks.begin()
        self._server.left = self._maps.forget
        self._server.changed = self._consider
        self._server.begin()
        self._readings.swept = self._consider
        self._readings.begin()
        try:
            start()
            if self._recorder:
                self._recorder.begin()  # not before: what cannot be started overwrites no recording
            self._consider()
            await self._done.wait()
        finally:
            self._probes.close()
            self._dumps.close()
            self._chunks.close()
            self._readings.close()
            self._hooks.close()
            self._output.close()
            if self._recorder:
                # Before the readers are let go: one that has seen the end finds the recording whole.
                self._recorder.close()
            await self._server.close()

    def _before_end(self) -> None:
        self._output.drain()
        self._hooks.drain()
        self._chunks.drain()
        self._dumps.drain()

    def _reap(self) -> None:
        was = self._runs.running
        self._runs.reap()
        if was and not self._runs.running:
            self._seen_end = self._server.readers > 0
        self._readings.hurry()
        self._consider()

    def _heed(self, reader: Reader, command: AnyCommand) -> None:
        if isinstance(command, MapWanted):
            self._maps.want(reader, command)
        else:
            self._obey(command)

    def _obey(self, command: AnyCommand) -> None:
        match command:
            case Input():
                self._output.write(command.text)
            case Resize():
                self._resize(command.columns, command.rows)
            case Signal():
                self._signal(command.pids, command.signal)
            case ReadEnvironment():
                self._read_environment(command.pid)
            case CensusNow():
                self._hooks.send(command.pid, {"do": "census", "tensors": command.tensors})
            case Relaunch():
                self._relaunch(command)
            case Stop():
                self._quit = self._quit or command.quit
                self._next = None
                self._end(command.grace_s)

    def _relaunch(self, command: Relaunch) -> None:
        try:
            self._runs.prepare(command.argv, command.settings)
        except (StartError, ValueError) as error:
            # Before the present run is ended for nothing.
            self._stream.notice("relaunch", "error", f"not relaunched: {error}")
            return
        self._stream.notice("relaunch", "info", "")
        self._next = command
        self._end(command.grace_s)

    def _end(self, grace_s: float) -> None:
        if self._stopping is not None and not self._stopping.done():
            self._ending.hasten(grace_s)
            return
        self._stopping = self._loop.create_task(self._end_and_go_on(grace_s))

    async def _end_and_go_on(self, grace_s: float) -> None:
        try:
            if self._runs.number:
                await self._ending.end(grace_s)
            command, self._next = self._next, None
            if command is not None and not self._quit:
                self._start(command)
        except Exception as error:
            traceback.print_exc()
            self._stream.notice("ending", "error", f"ending the run has failed: {type(error).__name__}: {error}")
        finally:
            self._stopping = None
            self._consider()

    def _start(self, command: Relaunch) -> None:
        self._output.drain()
        self._output.run = self._runs.number + 1
        self._ending.gpu_pids.clear()
        self._ending.baseline.clear()
        try:
            self._runs.start(command.argv, command.settings)
        except (StartError, ValueError) as error:
            self._output.run = max(1, self._runs.number)
            self._stream.notice("relaunch", "error", f"not relaunched: {error}")
        self._seen_end = False
        self._readings.hurry()

    def _resize(self, columns: int, rows: int) -> None:
        columns, rows = min(max(columns, 1), 9999), min(max(rows, 1), 9999)
        if (columns, rows) != (self._terminal.columns, self._terminal.rows):
            self._terminal.resize(columns, rows)
            self._stream.publish(Terminal(t=0.0, columns=columns, rows=rows))

    def _signal(self, pids: list[int], number: int) -> None:
        troubles = [trouble for pid in pids if (trouble := self._signal_one(pid, number))]
        self._stream.notice("signal", "error" if troubles else "info", "; ".join(troubles))

    def _signal_one(self, pid: int, number: int) -> str:
        try:
            self._readings.host.signal(pid, number)
        except OSError as error:
            return f"process {pid} got no signal {number}: {error.strerror}"
        except ValueError as error:
            return f"process {pid} got no signal: {error}"
        return ""

    def _read_environment(self, pid: int) -> None:
        try:
            found = Environment(t=0.0, pid=pid, variables=read_environment(pid))
        except OSError as error:
            found = Environment(t=0.0, pid=pid, variables={}, error=error.strerror or str(error))
        self._stream.publish(found)

    def _consider(self) -> None:
        """End, or end soon, if nothing runs and nobody reads."""
        if self._quit and self._stopping is None:
            self._done.set()
            return
        if self._server.readers or self._stopping is not None or self._busy():
            if self._linger is not None:
                self._linger.cancel()
                self._linger = None
            if self._server.readers and not self._runs.running:
                self._seen_end = True
        elif self._linger is None:
            wait = LINGER_S if self._server.ever else UNREAD_S
            if self._runs.number and not self._seen_end:
                wait = UNSEEN_S
            self._linger = self._loop.call_later(wait, self._done.set)

    def _busy(self) -> bool:
        """Whether the script runs, or what it left behind in our terminal, which would be hung up on."""
        if self._runs.running:
            return True
        ours = os.getsid(0)
        return any(
            (stat := read_stat(pid)) is not None and stat.session == ours for pid in self._readings.host.of_runs()
        )
