"""The output panel as a user meets it: what it shows, how it scrolls, and when keys are typed to the script."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from textual import on
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.events import Paste
from textual.pilot import Pilot

from tests import streams as s
from tfmemtop import events as ev
from tfmemtop.settings import Settings
from tfmemtop.state import State, apply
from tfmemtop.ui.panels.output_panel import OutputPanel, encode

SESSION = s.session()


class Desk(App[None]):
    """An app with the panel and with keys of its own. While the user types to the script, the script must get them."""

    BINDINGS = [Binding("q", "leave"), Binding("ctrl+c", "leave"), Binding("tab", "leave"), Binding("R", "leave")]  # noqa: RUF012

    def __init__(self) -> None:
        super().__init__(ansi_color=True)
        self.panel = OutputPanel()
        self.state = State()
        self.typed: list[str] = []
        self.left = 0

    def compose(self) -> ComposeResult:
        yield self.panel

    def action_leave(self) -> None:
        self.left += 1

    @on(OutputPanel.Typed)
    def _typed(self, message: OutputPanel.Typed) -> None:
        self.typed.append(message.text)

    def take(self, *events: ev.Event) -> None:
        for event in events:
            apply(self.state, event)
        self.panel.show(self.state)

    def write(self, text: str, run: int = 1, skipped: int = 0) -> None:
        self.take(ev.Output(t=1.0, run=run, text=text, skipped=skipped))

    @property
    def lines(self) -> list[str]:
        return [self.panel.render_line(y).text.rstrip() for y in range(self.panel.size.height)]


def run(number: int) -> ev.Run:
    return ev.Run(t=1.0, run=number, pid=7, argv=["python"], cwd="/", settings=Settings())


@asynccontextmanager
async def begun(size: tuple[int, int] = (60, 5)) -> AsyncIterator[tuple[Desk, Pilot[None]]]:
    """Run the app at *size*, columns and rows. The first run has begun."""
    app = Desk()
    async with app.run_test(size=size) as pilot:
        app.take(SESSION, run(1))
        app.panel.focus()
        await pilot.pause()
        yield app, pilot


async def test_it_shows_the_end_of_the_output_and_where_all_of_it_is_kept() -> None:
    async with begun((60, 6)) as (app, _):
        app.write("".join(f"epoch {n}\r\n" for n in range(9)) + "step 1\rstep 2")
        assert app.lines[1:] == ["epoch 5", "epoch 6", "epoch 7", "epoch 8", "step 2"]
        assert "Output" in app.lines[0] and "abcde.log" in app.lines[0]


async def test_a_recorded_terminal_keeps_its_size_and_its_long_lines_are_wrapped() -> None:
    app = Desk()
    async with app.run_test(size=(20, 4)) as pilot:
        app.take(SESSION, ev.Terminal(t=0.0, columns=30, rows=10))
        app.write("x" * 25 + "\r\nsecond\r\nthird " + "漢" * 10)
        assert app.lines[1:] == ["second", "third " + "漢" * 7, "漢" * 3]
        app.panel.focus()
        await pilot.press("home")
        assert app.lines[1:] == ["x" * 20, "x" * 5, "second"]
        assert app.panel.terminal.columns == 30


async def test_scrolled_it_stays_where_it_is_until_the_end_is_asked_for() -> None:
    async with begun() as (app, pilot):
        app.write("".join(f"line {n}\r\n" for n in range(30)))
        await pilot.press("pageup")
        before = app.lines[1:]
        assert before[0] == "line 24" and "scrolled 3 lines" in app.lines[0]
        app.write("more\r\nand more\r\n")
        assert app.lines[1:] == before and "scrolled 5 lines" in app.lines[0]
        await pilot.press("home")
        assert app.lines[1] == "line 0"
        await pilot.press("end")
        assert app.lines[1:] == ["line 29", "more", "and more", ""] and "scrolled" not in app.lines[0]


async def test_a_new_run_begins_below_a_rule() -> None:
    async with begun((60, 8)) as (app, _):
        app.write("old\r\nlast words")
        app.take(ev.RunEnd(t=2.0, run=1, exit_code=0, signal=None), run(2))
        app.write("new", run=2)
        assert app.lines[1] == "new"
        app.panel.move(-100_000)
        assert app.lines[1:5] == ["old", "last words", "── run 2 ──", "new"]


async def test_what_was_left_out_is_said_where_it_is_missing() -> None:
    async with begun((80, 6)) as (app, _):
        app.write("begin\r\n")
        app.write("end", skipped=3_250_586)
        assert app.lines[1:4] == ["begin", f"… 3.1 MiB left out, see {SESSION.output_path}", "end"]


async def test_hidden_it_is_not_fed_and_catches_up_when_shown() -> None:
    async with begun() as (app, pilot):
        app.panel.display = False
        await pilot.pause()
        for n in range(400):
            app.write(f"{n:1000}\r\n")
        assert app.panel.terminal.scrolled_off == 0
        app.panel.display = True
        await pilot.pause()
        app.panel.show(app.state)
        while app.panel._next < app.state.output_count:
            await pilot.pause()
        assert app.lines[-2].strip() == "399"
        app.panel.move(-100_000)
        assert app.lines[1].startswith("… earlier output left out")


async def test_a_replay_that_goes_back_begins_anew() -> None:
    async with begun() as (app, _):
        app.write("late")
        app.state = State()
        app.take(SESSION, run(1))
        app.write("early")
        assert app.lines[1:] == ["early", "", "", ""]


@pytest.mark.parametrize("key", ["enter", "i"])
async def test_typing_reaches_the_script_and_nothing_else(key: str) -> None:
    async with begun() as (app, pilot):
        app.write("continue? ")
        await pilot.press(key)
        assert "typing" in app.lines[0] and "Ctrl-]" in app.lines[0]
        await pilot.press("y", "q", "R", "space", "tab", "ctrl+c", "ctrl+d", "up", "backspace", "enter", "ä")
        assert "".join(app.typed) == "yqR \t\x03\x04\x1b[A\x7f\rä" and app.left == 0
        await pilot.press("ctrl+right_square_bracket")
        assert "typing" not in app.lines[0]
        await pilot.press("q")
        assert app.left == 1


async def test_the_cursor_shows_while_typing() -> None:
    async with begun() as (app, pilot):
        app.write("name: ")

        def reversed_columns() -> list[int]:
            columns, x = [], 0
            for segment in app.panel.render_line(1):
                if segment.style and segment.style.reverse:
                    columns.append(x)
                x += segment.cell_length
            return columns

        assert reversed_columns() == []
        await pilot.press("i")
        assert reversed_columns() == [6]
        app.write("Ada 漢\b\b")
        assert reversed_columns() == [10]
        assert app.lines[1] == "name: Ada 漢"


async def test_one_escape_is_the_scripts_two_end_typing() -> None:
    async with begun() as (app, pilot):
        await pilot.press("i", "escape", "x")
        assert app.typed == ["\x1b", "x"] and app.panel.typing
        await pilot.press("escape", "escape")
        assert app.typed == ["\x1b", "x", "\x1b"] and not app.panel.typing


async def test_a_paste_is_typed_and_marked_if_the_script_asked_for_it() -> None:
    async with begun() as (app, pilot):
        app.panel.post_message(Paste("not yet"))
        await pilot.press("i")
        app.panel.post_message(Paste("a\nb"))
        await pilot.pause()
        app.write("\x1b[?2004h")
        app.panel.post_message(Paste("c\x1b[201~d"))
        await pilot.pause()
        assert app.typed == ["a\rb", "\x1b[200~c[201~d\x1b[201~"]


async def test_typing_ends_with_the_run_and_cannot_begin_without_one() -> None:
    async with begun() as (app, pilot):
        await pilot.press("i")
        app.take(ev.RunEnd(t=2.0, run=1, exit_code=0, signal=None))
        assert not app.panel.typing
        await pilot.press("i", "x")
        assert not app.panel.typing and app.typed == []


@pytest.mark.parametrize(
    ("key", "character", "sent"),
    [
        ("a", "a", "a"),
        ("+", "+", "+"),
        ("enter", "\r", "\r"),
        ("ctrl+c", "\x03", "\x03"),
        ("ctrl+backslash", "\x1c", "\x1c"),
        ("alt+b", None, "\x1bb"),
        ("shift+tab", None, "\x1b[Z"),
        ("up", None, "\x1b[A"),
        ("ctrl+right", None, "\x1b[1;5C"),
        ("delete", None, "\x1b[3~"),
        ("f1", None, "\x1bOP"),
        ("f5", None, "\x1b[15~"),
        ("super+a", None, None),
    ],
)
def test_keys_are_sent_as_a_terminal_sends_them(key: str, character: str | None, sent: str | None) -> None:
    assert encode(key, character) == sent
