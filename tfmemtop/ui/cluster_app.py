"""The cluster's app and its screen: the server, the table, what is wrong with the chosen row, the keys."""

import time
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen, Screen

from tfmemtop.cluster.answers import remark
from tfmemtop.cluster.watch import ClusterWatch, Seen, no_answer
from tfmemtop.options import ScreenOutcome, UiOptions
from tfmemtop.safe import safe
from tfmemtop.state import State
from tfmemtop.ui.draw.lines import Line, Panel, fit, width_of
from tfmemtop.ui.draw.palette import BOLD, DIM, ERROR, PLAIN, TITLE, WARNING, Glyphs
from tfmemtop.ui.draw.text import wrap
from tfmemtop.ui.keys import Key
from tfmemtop.ui.panels.cluster_table import ASKED, ClusterTable
from tfmemtop.ui.panels.key_bar import Hints, KeyBar
from tfmemtop.ui.screen_app import ScreenApp
from tfmemtop.ui.screens.drawn import Changed, Drawn
from tfmemtop.units import format_duration

KEYS: tuple[Key, ...] = (
    Key("f1,question_mark,h", "F1", "help", "help"),
    Key("slash,f4", "/", "", "filter"),
    Key("full_stop,comma,f6", ".", "", "sort"),
    Key("I", "I", "", "invert"),
    Key("r,f5", "r", "refresh", "refresh"),
    Key("q,f10", "q", "leave", "quit"),
)
"""The keys of the cluster's screen. Those of a session's screens are in ``ui/keys.py``."""

_NOTHING_WRONG = "The figures show nothing wrong here."
_CHOSEN, _CHOSEN_SHORT = 4, 2
"""Lines for what is wrong with the chosen row, title included: on a screen of ``_ROOMY`` lines, and on a lower one."""
_ROOMY = 18


class ClusterHeader(Panel):
    """Two lines: what is shown, with the time of the figures; then the counts, or why there are no new figures."""

    DEFAULT_CSS = "ClusterHeader { height: 2; }"

    def __init__(self, name: str, *, glyphs: Glyphs) -> None:
        super().__init__(glyphs=glyphs)
        self._name = name
        self._at = 0.0
        self._told: tuple[str, Style] = ASKED, DIM

    def tell(self, told: str, style: Style, at: float = 0.0) -> None:
        """Draw the line *told*, and the time of the figures, *at* (seconds since 1970)."""
        self._told, self._at = (told, style), at
        self.redraw()

    def build(self, width: int, height: int) -> list[Line]:
        clock = f" {time.strftime('%H:%M:%S', time.localtime(self._at))} " if self._at else ""
        name = fit(f" {self._name}", max(0, width - 30), self.glyphs)
        first: Line = [Segment(" tfmemtop cluster ", TITLE), Segment(name, BOLD)]
        blank = " " * max(0, width - width_of(first) - len(clock))
        told, style = self._told
        return [[*first, Segment(blank), Segment(clock, DIM)], [Segment(fit(f" {told}", width, self.glyphs), style)]]


class ChosenPanel(Panel):
    """What is wrong with the chosen row, at length."""

    DEFAULT_CSS = "ChosenPanel { height: 4; }"

    def __init__(self, table: ClusterTable, *, glyphs: Glyphs) -> None:
        super().__init__(glyphs=glyphs)
        self._table = table

    def build(self, width: int, height: int) -> list[Line]:
        row = self._table.under_cursor
        if row is None:
            return []
        told = [*(wrong.sentence for wrong in row.wrongs), *map(remark, row.remarks)] or [_NOTHING_WRONG]
        rows = [line for text in told for line in wrap(text, width - 4, "  ")]
        style = PLAIN if row.wrongs else DIM
        return [self.title_line(width, row.whose, row.model), *([Segment(f"  {line}", style)] for line in rows)]


class ClusterScreen(Drawn, Screen[None]):
    """The screen of a cluster. It draws what the app has read last."""

    def __init__(self, url: str, job: str | None, *, glyphs: Glyphs) -> None:
        super().__init__()
        self._url = url
        named = f" {glyphs.dot} job {safe(job)}" if job is not None else ""
        self.header = ClusterHeader(safe(url.partition("://")[2]) + named, glyphs=glyphs)
        self.table = ClusterTable(job, glyphs=glyphs)
        self.chosen = ChosenPanel(self.table, glyphs=glyphs)
        self.keys = KeyBar(self.hints, glyphs=glyphs)

    def compose(self) -> ComposeResult:
        yield self.header
        yield self.table
        yield self.chosen
        yield self.keys

    def on_mount(self) -> None:
        self.table.focus()
        self._fit_chosen()
        self.call_after_refresh(lambda: self.look(self.table.seen))

    def look(self, seen: Seen) -> None:
        """Draw *seen*."""
        self._fit_chosen()
        self.header.tell(*self._told(seen), seen.at)
        self.table.look(seen)
        self.chosen.redraw()
        self.keys.redraw()

    def _fit_chosen(self) -> None:
        self.chosen.styles.height = _CHOSEN if self.app.size.height >= _ROOMY else _CHOSEN_SHORT

    def _told(self, seen: Seen) -> tuple[str, Style]:
        """Return the second line of the header, and its style."""
        now = time.time()
        if seen.trouble is not None:
            told = f"{no_answer(self._url, seen.trouble)}, for {format_duration(now - seen.since)}"
            old = f"; the figures are {format_duration(now - seen.answered)} old" if seen.answered else ""
            return told + old, ERROR
        if not seen.answered:
            return ASKED, DIM
        if seen.apart_s is None:
            return seen.totals, PLAIN
        # With little room, the difference of the clocks is shown instead of the counts, because it is rare.
        both = f"{seen.totals} {self.header.glyphs.dot} {seen.clocks}"
        return (both if len(both) < self.app.size.width else seen.clocks), WARNING

    def refresh_state(self, state: State) -> None:
        self.look(self.table.seen)

    def hints(self) -> Hints:
        """The keys of the last line."""
        return self.table.mode or [(key.shown, key.footer) for key in KEYS if key.footer]

    @on(ClusterTable.Moved)
    def _moved(self) -> None:
        self.chosen.redraw()

    @on(Changed)
    def _changed(self) -> None:
        self.keys.redraw()
        self.table.redraw()


class ClusterApp(ScreenApp):
    """Shows the GPUs of many machines. It only reads from Prometheus, and changes nothing."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding(key.keys, key.action, show=False) for key in KEYS if key.action]

    def __init__(self, watch: ClusterWatch, options: UiOptions, *, job: str | None) -> None:
        super().__init__(options)
        self.watch_ = watch
        self.seen = Seen()
        self.main = ClusterScreen(watch.client.address.url, job, glyphs=self.glyphs)

    def get_default_screen(self) -> Screen[None]:
        return self.main

    def on_mount(self) -> None:
        self.run_worker(self._follow(), name="follow", exit_on_error=True)
        self.set_interval(1.0, self._tick)

    async def _follow(self) -> None:
        async for seen in self.watch_.seen():
            self.seen = seen
            self.redraw()

    def _tick(self) -> None:
        """Redraw the header while there is a trouble, since it shows how long the trouble has lasted."""
        if self.seen.trouble is not None:
            self.redraw()

    def redraw(self) -> None:
        """Draw the newest figures."""
        self._try(lambda: self.main.look(self.seen))

    def on_resize(self) -> None:
        self.call_after_refresh(self.redraw)

    def action_refresh(self) -> None:
        self.watch_.hurry()

    def action_help(self) -> None:
        from tfmemtop.ui.screens.help import HelpDialog

        self.push_screen(HelpDialog("cluster", glyphs=self.glyphs))

    # The end of the app.

    def action_leave(self) -> None:
        self.exit(ScreenOutcome(0))

    async def action_quit(self) -> None:
        self.action_leave()

    def action_help_quit(self) -> None:
        """Handle Ctrl-C: quit, unless a dialog is open. Textual would only show a hint."""
        if not isinstance(self.screen, ModalScreen):
            self.action_leave()
