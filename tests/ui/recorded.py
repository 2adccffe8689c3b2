"""The live screen on a recording: its events up to a moment, then silence, and a note of what is sent."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from tfmemtop import recording
from tfmemtop.events import AnyCommand, AnyEvent
from tfmemtop.options import UiOptions
from tfmemtop.ui.app import TfmemtopApp
from tfmemtop.ui.source import Batch

RECORDINGS = Path(__file__).parents[1] / "recordings"


class Recorded:
    """A source that is live for the screen: what is asked of it is kept in ``sent``."""

    live = True

    def __init__(self, stream: list[AnyEvent]) -> None:
        self.stream = stream
        self.sent: list[AnyCommand] = []
        self.more: asyncio.Queue[list[AnyEvent] | None] = asyncio.Queue()

    async def batches(self) -> AsyncIterator[Batch]:
        yield self.stream
        while (batch := await self.more.get()) is not None:
            yield batch

    async def send(self, command: AnyCommand) -> None:
        self.sent.append(command)

    async def close(self) -> None:
        await self.more.put(None)


def events_until(name: str, t: float) -> list[AnyEvent]:
    """The events of recording *name* up to *t* seconds."""
    return [event for event in recording.read(RECORDINGS / f"{name}.jsonl").events() if event.t <= t]


def screen(name: str, t: float, options: UiOptions | None = None) -> TfmemtopApp:
    """The app, showing recording *name* as it was at *t* seconds."""
    return TfmemtopApp(Recorded(events_until(name, t)), options or UiOptions())


def source_of(app: TfmemtopApp) -> Recorded:
    """The recorded source that *app* was made with."""
    assert isinstance(app.source, Recorded)
    return app.source
