"""Runs one script several times, without a screen. Each run is ended as soon as it has shown enough."""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, suppress

from tfmemtop.engine.opening import open_stream
from tfmemtop.engine.process.launch import Launch
from tfmemtop.engine.sources.readings import DRIVER_WAIT_S
from tfmemtop.engine.stream.folders import open_session
from tfmemtop.engine.stream.stream import Sink, Stream
from tfmemtop.engine.watch import Watch
from tfmemtop.events import Event
from tfmemtop.events.commands import TRY_GRACE_S
from tfmemtop.settings import Settings

_LOOK_S = 0.25
_REPLAY_S = 60.0
"""How long a replay may take after the end of a try, including the build of its program."""
_INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Tries:
    """The tries of the command *argv* under one *watch*; made by :func:`open_tries`."""

    def __init__(self, stream: Stream, watch: Watch, argv: list[str]) -> None:
        self._stream = stream
        self._watch = watch
        self._argv = argv
        self._news = asyncio.Event()
        self.interrupted = False
        """Whether a signal has requested the end of the tries."""
        stream.listen(self._notice)

    def now(self) -> float:
        """Return the present time in seconds, on the clock of the events."""
        return self._stream.now()

    async def run(
        self,
        settings: Settings,
        take: Sink,
        over: Callable[[float], bool],
        argv: list[str] | None = None,
        *,
        trace: bool = False,
    ) -> bool:
        """Run the script under *settings* until it ends, or until *over* returns true; then end it.

        *over* takes the session's time in seconds. With *argv*, that command is run in place of the script. With
        *trace*, all allocations of the run are recorded and replayed.

        *take* receives every event of the run. This returns once the run's memory is free again. If the memory is not
        free after some time, this returns too, and an event reports it. The result is true if the run ended or *over*
        returned true, and false if the run was interrupted.

        Raises:
            StartError: the script cannot be started.
            ValueError: the settings do not fit this machine.
        """
        if self.interrupted:
            return False
        run = await self._watch.prepare(argv or self._argv, settings, trace=trace)
        self._stream.listen(take)
        try:
            # Read what the GPUs hold before the run. Where the driver lists no processes, the run's memory counts as
            # free once the GPUs hold no more than this again.
            with suppress(asyncio.TimeoutError):  # a notice reports that the driver does not answer
                await asyncio.wait_for(self._watch.readings.devices(), DRIVER_WAIT_S)
            self._watch.start(run)
            reached = await self._until(over)
            await self._watch.ending.end(TRY_GRACE_S)
            await self._replayed()
            return reached
        finally:
            await self._watch.ending.end(TRY_GRACE_S)
            self._stream.forget(take)

    def interrupt(self) -> None:
        """End the try that runs, and start no further one. The second call kills the try."""
        if self.interrupted:
            self._watch.ending.hasten(0.0)
        self.interrupted = True
        self._news.set()

    async def _until(self, over: Callable[[float], bool]) -> bool:
        done = False
        while not done and not self.interrupted:
            await self._look()
            done = over(self._stream.now()) or not self._watch.runs.running
        return done

    async def _look(self) -> None:
        """Wait for the next event or an interruption, for a short time at most."""
        self._news.clear()
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._news.wait(), _LOOK_S)

    async def _replayed(self) -> None:
        """Wait for the replay of the try's allocations, since the try may have ended before it."""
        until = self._stream.now() + _REPLAY_S
        while self._watch.replays.going and not self.interrupted and self._stream.now() < until:
            await self._look()

    def _notice(self, _: Event) -> None:
        self._news.set()


@asynccontextmanager
async def open_tries(launch: Launch, output: int) -> AsyncIterator[Tries]:
    """Return the tries of ``launch.argv``, whose stdout and stderr go to the file descriptor *output*.

    Enter this context manager in the main thread of a process that has no other children. INT, TERM and HUP interrupt
    the tries.

    Raises:
        OSError: there is no place for the hook's socket.
    """
    with closing(open_session()) as folder:
        stream, _ = open_stream(launch, folder, None)
        async with Watch(stream, launch, folder, output=output) as watch:
            tries = Tries(stream, watch, launch.argv)
            with _interrupting(tries.interrupt):
                yield tries


@contextmanager
def _interrupting(interrupt: Callable[[], None]) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    numbers = [number for number in _INTERRUPTS if signal.getsignal(number) is not signal.SIG_IGN]
    for number in numbers:
        loop.add_signal_handler(number, interrupt)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
