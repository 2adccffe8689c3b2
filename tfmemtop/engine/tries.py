"""Runs of one script, one after another and without a screen, each ended as soon as enough is known."""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

from tfmemtop.engine.process.launch import Launch
from tfmemtop.engine.session_event import describe
from tfmemtop.engine.stream.folders import open_session
from tfmemtop.engine.stream.stream import Sink, Stream
from tfmemtop.engine.watch import Watch, open_watch
from tfmemtop.events import Event
from tfmemtop.settings import Settings

GRACE_S = 5.0
"""How long a script has to end by itself once it is asked to."""

_LOOK_S = 0.25
_REPLAY_S = 60.0
"""How long a replay may take after the end of a try, the building of its program included."""
_DRIVER_WAIT_S = 10.0
_INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Tries:
    """Tries of the command *argv* under one *watch*, made by :func:`open_tries`."""

    def __init__(self, stream: Stream, watch: Watch, argv: list[str]) -> None:
        self._stream = stream
        self._watch = watch
        self._argv = argv
        self._news = asyncio.Event()
        self.interrupted = False
        """Whether a signal has asked for the end."""
        stream.listen(self._notice)

    def now(self) -> float:
        """Seconds on the clock of the events."""
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
        """Run the script under *settings* until it ends, or *over* (of session seconds) says so; then end it.

        With *argv* that command is run in its place. With *trace* all its allocations are recorded and replayed.

        Every event of it goes to *take*. Returns once its memory is free again, or when waiting for that was given
        up, as an event says. True if it was over, false if it was interrupted.

        Raises:
            StartError: it cannot be started.
            ValueError: the settings do not fit this machine.
        """
        if self.interrupted:
            return False
        run = await self._watch.prepare(argv or self._argv, settings, trace=trace)
        self._stream.listen(take)
        try:
            # What the GPUs hold before it: where the driver names no processes, that is to be reached again.
            with suppress(asyncio.TimeoutError):  # a notice says that the driver does not answer
                await asyncio.wait_for(self._watch.readings.devices(), _DRIVER_WAIT_S)
            self._watch.start(run)
            reached = await self._until(over)
            await self._watch.ending.end(GRACE_S)
            await self._replayed()
            return reached
        finally:
            await self._watch.ending.end(GRACE_S)
            self._stream.forget(take)

    def interrupt(self) -> None:
        """End the try that runs, and make no other; the second time, kill it."""
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
        """Wait for something to happen, a little at most."""
        self._news.clear()
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._news.wait(), _LOOK_S)

    async def _replayed(self) -> None:
        """Wait for what the try's allocations predict: it may have ended before they were replayed."""
        until = self._stream.now() + _REPLAY_S
        while self._watch.replays.going and not self.interrupted and self._stream.now() < until:
            await self._look()

    def _notice(self, _: Event) -> None:
        self._news.set()


@asynccontextmanager
async def open_tries(launch: Launch, output: int) -> AsyncIterator[Tries]:
    """Tries of ``launch.argv``, whose stdout and stderr go to the file descriptor *output*.

    Enter it in the main thread of a process that has no other children. INT, TERM and HUP interrupt the tries.

    Raises:
        OSError: no place for the hook's socket.
    """
    folder = open_session()
    try:
        stream = Stream()
        stream.publish(describe(launch, "fit", None))
        async with open_watch(stream, launch, folder, output=output) as watch:
            tries = Tries(stream, watch, launch.argv)
            with _interrupting(tries.interrupt):
                yield tries
    finally:
        folder.remove()


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
