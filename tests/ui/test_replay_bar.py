"""The replay's bar, with a recording that is read from a file."""

from pathlib import Path

import pytest
from textual.app import App, ComposeResult

from tests import streams as s
from tfmemtop import events as ev
from tfmemtop.events.recording import Writer
from tfmemtop.experiments.session.replay import ReplaySource
from tfmemtop.state import State
from tfmemtop.ui.panels.header import ReplayBar

SESSION = s.session()


@pytest.fixture
def source(tmp_path: Path) -> ReplaySource:
    path = tmp_path / "run.jsonl"
    writer = Writer(path)
    writer.write(SESSION)
    for n in range(1, 301):
        writer.write(ev.ProcessReadings(t=float(n), processes=[]))
    writer.close()
    with path.open("ab") as file:
        file.write(b"{damaged\n")
    return ReplaySource(path, clock=lambda: 0.0)


class Desk(App[None]):
    def __init__(self, source: ReplaySource) -> None:
        super().__init__(ansi_color=True)
        self.bar = ReplayBar(source)

    def compose(self) -> ComposeResult:
        yield self.bar

    @property
    def line(self) -> str:
        self.bar.show(State())
        return self.bar.render_line(0).text.rstrip()


async def settle(source: ReplaySource) -> None:
    async for _ in source.batches():
        if not source.seeking:
            return


async def test_it_shows_time_speed_and_what_can_be_done(source: ReplaySource) -> None:
    app = Desk(source)
    async with app.run_test(size=(100, 3)):
        source.seek(150)
        assert "seeking 0%" in app.line
        await settle(source)
        source.change_speed(1)
        assert app.line.startswith(" ▶ 2× 00:02:30 ━") and "00:05:00" in app.line and "Space pause" in app.line
        track = [c for c in app.line if c in "━●─"]
        assert abs(track.index("●") - len(track) / 2) <= 1
        source.toggle_pause()
        assert app.line.startswith(" ▮▮ 2×") and "Space play " in app.line
        source.seek(300)
        await settle(source)
        assert "Space play again" in app.line
        assert "at the end" in app.line and "1 damaged line left out" in app.line
