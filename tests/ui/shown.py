"""The app on a made-up or recorded stream, its keys, and what it shows as text."""

from collections.abc import Iterable
from pathlib import Path

from rich.segment import Segment
from textual.pilot import Pilot

from tests import streams as s
from tests.ui.recorded import Recorded
from tfmemtop import events
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
