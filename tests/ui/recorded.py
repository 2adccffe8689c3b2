"""The live screen on a recording: it receives the events up to a moment, then none. The commands sent are stored."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from tfmemtop.events import Command, Event, recording
from tfmemtop.experiments.session import LiveSource
from tfmemtop.ui import UiOptions
from tfmemtop.ui.app import TfmemtopApp

RECORDINGS = Path(__file__).parents[1] / "recordings"


class _Engine:
    """An engine that sends *stream*, and then each batch put into ``more``, up to a ``None``.

    It stores the commands that it receives in ``sent``.
    """

    def __init__(self, stream: list[Event]) -> None:
        self.stream = stream
        self.sent: list[Command] = []
        self.more: asyncio.Queue[list[Event] | None] = asyncio.Queue()

    async def events(self) -> AsyncIterator[list[Event]]:
        yield self.stream
        while (batch := await self.more.get()) is not None:
            yield batch

    async def send(self, command: Command) -> None:
        self.sent.append(command)

    async def close(self) -> None:
        await self.more.put(None)


class Recorded(LiveSource):
    """A live source whose engine sends *stream*. ``sent`` and ``more`` are those of the engine."""

    def __init__(self, stream: list[Event]) -> None:
        engine = _Engine(stream)
        super().__init__(engine)
        self.sent, self.more = engine.sent, engine.more


def events_until(name: str, t: float) -> list[Event]:
    """Return the events of recording *name* up to *t* seconds."""
    return [event for event in recording.read(RECORDINGS / f"{name}.jsonl").events() if event.t <= t]


def recording_of(session: str) -> Path | None:
    """Return the path of the recording of *session*, the id of a session of a kernel; ``None`` if there is none."""
    found = RECORDINGS.glob("cpu-kernel-*.jsonl")
    return next((path for path in found if recording.read(path).session.id == session), None)


def screen(name: str, t: float, options: UiOptions | None = None) -> TfmemtopApp:
    """Return the app, which shows recording *name* as it was at *t* seconds."""
    return TfmemtopApp(Recorded(events_until(name, t)), options or UiOptions())


def source_of(app: TfmemtopApp) -> Recorded:
    """Return the recorded source that *app* was made with."""
    assert isinstance(app.session.source, Recorded)
    return app.session.source
