"""The app on a made-up or recorded stream, its keys, and what it shows as text.

On a recording, it receives the events up to a moment, then none. The commands that it sends are stored.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from rich.segment import Segment
from textual.pilot import Pilot

from tests import streams as s
from tfmemtop import events
from tfmemtop.events import Command, Event, recording
from tfmemtop.experiments.session import LiveSource
from tfmemtop.experiments.session.replay import ReplaySource
from tfmemtop.ui import ScreenOutcome, UiOptions
from tfmemtop.ui.app import TfmemtopApp

GIB = 2**30


def training() -> list[events.Event]:
    return [
        *s.initialised(),
        s.device_reading(2.0, {100: 2 * GIB}),
        s.allocator(2.1, 100, in_use=GIB // 8, peak=GIB),
        events.Output(t=2.2, run=1, text="hello from the script\r\n"),
    ]


ENDED = events.RunEnd(t=3.0, run=1, exit_code=3, signal=None)


def app(stream: list[events.Event] | None = None, options: UiOptions | None = None) -> TfmemtopApp:
    return TfmemtopApp(Recorded(training() if stream is None else stream), options or UiOptions())


def paused_replay(path: Path, stream: Iterable[events.Event]) -> ReplaySource:
    """Return the replay of a recording at *path*, which is written of *stream*. It stands still."""
    first, *rest = stream
    source = ReplaySource(s.written(path, [first, *sorted(rest, key=lambda event: event.t)]))
    source.paused = True
    return source


async def drawn(pilot: Pilot[ScreenOutcome]) -> TfmemtopApp:
    """Return the app after it has folded and drawn every event that it has received."""
    await pilot.pause()
    shown = pilot.app
    assert isinstance(shown, TfmemtopApp)
    shown.redraw()
    await pilot.pause()
    return shown


@asynccontextmanager
async def running(
    app: TfmemtopApp, size: tuple[int, int] = (160, 48), *, notifications: bool = False
) -> AsyncIterator[tuple[Pilot[ScreenOutcome], TfmemtopApp]]:
    """Run *app* in a terminal of *size*, columns and rows. It is drawn at the beginning."""
    async with app.run_test(size=size, notifications=notifications) as pilot:
        yield pilot, await drawn(pilot)


def text_of(shown: TfmemtopApp) -> str:
    """Return the screen as text."""
    strips = shown.screen._compositor.render_strips()
    return "\n".join(strip.text for strip in strips)


async def press(pilot: Pilot[ScreenOutcome], *keys: str) -> str:
    await pilot.press(*keys)
    return text_of(await drawn(pilot))


def line_text(line: Iterable[Segment]) -> str:
    """Return the text of a line."""
    return "".join(segment.text for segment in line)


def rows(lines: Iterable[Iterable[Segment]]) -> list[str]:
    """Return the text of each line."""
    return [line_text(line) for line in lines]


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


def replay(name: str, t: float) -> ReplaySource:
    """Return the replay of recording *name*, which stands at *t* seconds."""
    source = ReplaySource(RECORDINGS / f"{name}.jsonl", clock=lambda: 0.0)
    source.seek(t)
    return source


def source_of(app: TfmemtopApp) -> Recorded:
    """Return the recorded source that *app* was made with."""
    assert isinstance(app.session.source, Recorded)
    return app.session.source
