"""Figures and counts at the bounds of what an event may contain: every screen and report can still be made."""

import pytest

from tests import streams as s
from tests.anything import Filling
from tests.ui.shown import Recorded, line_text
from tests.ui.tour import SIZES, tour
from tfmemtop.events import FORMAT, Event
from tfmemtop.ui import UiOptions
from tfmemtop.ui.app import TfmemtopApp
from tfmemtop.ui.draw.lines import Line, Panel

NAMED = {"pid": 100, "ppid": 1, "run": 1, "index": 0, "format": FORMAT, "device": "GPU:0", "uuid": "GPU-a"}
FAILED = ("cannot be drawn", "This cannot be answered", "own rules", "could not be taken in", "cannot be made")
EXTREMES = {
    "highest": Filling("x", 1e400, 8, NAMED),
    "lowest": Filling("", -1e400, 1, NAMED),
    "many": Filling("x", 3, 500, NAMED | {"t": 1.0}),
}


def stream_of(name: str) -> list[Event]:
    """Return the events of *name* twice, since figures are also compared with earlier ones.

    The first four, which are the sessions, and the last one, which is the run's end, come only once.
    """
    stream = EXTREMES[name].events()
    return [*stream[:-1], *stream[4:]]


@pytest.mark.parametrize("name", EXTREMES)
async def test_every_screen_is_drawn(name: str) -> None:
    size = SIZES[list(EXTREMES).index(name) % len(SIZES)]
    for place, (shown, _) in (await tour(stream_of(name), size)).items():
        assert not [words for words in FAILED if words in shown], (place, shown)


class Failing(Panel):
    """A panel that cannot be drawn: ``build`` raises."""

    def build(self, width: int, height: int) -> list[Line]:
        raise ZeroDivisionError("division by zero")


@pytest.mark.fails_on_purpose
async def test_a_panel_that_fails_is_one_line_and_the_rest_lives_on() -> None:
    app = TfmemtopApp(Recorded([s.session(), s.run(), s.process(0.2, 100), s.alive(1.0, 100)]), UiOptions())
    app.main.why.build = Failing().build  # type: ignore[method-assign]
    app.main.why.wanted_height = lambda state, width: 2  # type: ignore[method-assign]
    async with app.run_test(size=(100, 30)) as pilot:
        while app.state.run is None:
            await pilot.pause()
        app.redraw()
        await pilot.pause()
        lines = [line_text(app.main.why.render_line(y)).strip() for y in range(2)]
        assert lines[0].startswith("this panel cannot be drawn: ZeroDivisionError: division by zero")
        assert lines[1] == ""
        assert "train.py" in line_text(app.main.table.render_line(2))
