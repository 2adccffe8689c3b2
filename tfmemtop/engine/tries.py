"""Runs of one script, one after another and without a screen, each ended as soon as it has told enough."""

import asyncio
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack

from tfmemtop.engine.dumps import Dumps
from tfmemtop.engine.ending import Ending
from tfmemtop.engine.folders import SessionFolder, open_session
from tfmemtop.engine.hooks import Hooks
from tfmemtop.engine.launch import Launch
from tfmemtop.engine.probe import Probes
from tfmemtop.engine.readings import Readings
from tfmemtop.engine.run import Runs
from tfmemtop.engine.session import describe
from tfmemtop.engine.stream import Sink, Stream
from tfmemtop.events import AnyEvent
from tfmemtop.settings import Settings

GRACE_S = 5.0
"""How long a script has to end by itself once it is asked to."""

_LOOK_S = 0.25
_DRIVER_WAIT_S = 10.0
_INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Tries:
    """Tries of ``launch.argv``; its stdout and stderr go to the file descriptor *output*.

    An asynchronous context manager, in the main thread of a process that has no other children.
    INT, TERM and HUP end the try that runs, and a second one kills it.

    Raises, on entering:
        OSError: no place for the hook's socket.
    """

    def __init__(self, launch: Launch, output: int) -> None:
        self._launch = launch
        self._output = output
        self._exit = AsyncExitStack()
        self._stream = Stream()
        self._news = asyncio.Event()
        self.interrupted = False
        """Whether a signal has said that this is enough."""

    async def __aenter__(self) -> "Tries":
        async with AsyncExitStack() as undo:
            folder = open_session()
            undo.callback(folder.remove)
            self._open(folder, undo)
            self._exit = undo.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._exit.aclose()

    def now(self) -> float:
        """Seconds on the clock of the events."""
        return self._stream.now()

    async def run(self, settings: Settings, take: Sink, over: Callable[[float], bool]) -> bool:
        """Run the script under *settings* until it ends, or *over* (of session seconds) says so; then end it.

        Every event of it goes to *take*. Returns once its memory is free again, or that has been
        waited for in vain, as an event says. Whether it was over, rather than interrupted.

        Raises:
            StartError: it cannot be started.
            ValueError: the settings do not fit this machine.
        """
        if self.interrupted:
            return False
        self._stream.listen(take)
        self._ending.gpu_pids.clear()
        self._ending.baseline.clear()
        try:
            try:
                # What the GPUs hold before it: where the driver names no processes, that is to be reached again.
                await asyncio.wait_for(self._readings.devices(), _DRIVER_WAIT_S)
            except asyncio.TimeoutError:
                pass  # a notice says that the driver does not answer
            self._runs.start(self._launch.argv, settings)
            self._readings.hurry()
            done = False
            while not done and not self.interrupted:
                self._news.clear()
                try:
                    await asyncio.wait_for(self._news.wait(), _LOOK_S)
                except asyncio.TimeoutError:
                    pass
                done = over(self._stream.now()) or not self._runs.running
            return done
        finally:
            await self._ending.end(GRACE_S)
            self._stream.forget(take)

    def _open(self, folder: SessionFolder, undo: AsyncExitStack) -> None:
        launch, stream = self._launch, self._stream
        loop = asyncio.get_running_loop()
        stream.publish(describe(launch, "fit", None))
        hooks = Hooks(stream, folder.hooks)
        self._runs = Runs(stream, launch, hook_socket=folder.hook_socket, terminal=None, output=self._output)
        self._readings = Readings(stream, self._runs, hooks)
        self._ending = self._readings.ending = Ending(stream, self._runs, self._readings.devices)
        self._ending.apart = self._readings.host.apart
        probes = Probes(stream, hooks, self._readings.host, enabled=launch.probe)
        dumps = Dumps(stream, hooks, self._runs.dumps)

        def drain() -> None:
            hooks.drain()
            dumps.drain()

        self._runs.before_end = drain
        stream.listen(self._notice)
        loop.add_signal_handler(signal.SIGCHLD, self._reap)
        undo.callback(loop.remove_signal_handler, signal.SIGCHLD)
        for number in _INTERRUPTS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                loop.add_signal_handler(number, self._interrupt)
                undo.callback(loop.remove_signal_handler, number)
        for part in (hooks, self._readings, dumps, probes):
            undo.callback(part.close)
        probes.begin()
        dumps.begin()
        hooks.begin()
        self._readings.begin()

    def _notice(self, _: AnyEvent) -> None:
        self._news.set()

    def _reap(self) -> None:
        self._runs.reap()
        self._readings.hurry()
        self._news.set()

    def _interrupt(self) -> None:
        if self.interrupted:
            self._ending.hasten(0.0)
        self.interrupted = True
        self._news.set()
