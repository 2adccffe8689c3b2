"""The base of all dialogs: a centred box over another screen, with its keys on the last line. Esc closes it.

Nothing blinks or moves. The box has the size that its lines need, at most nine tenths of the
terminal. Lines that do not fit can be scrolled to.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Generic, TypeVar

from rich.cells import cell_len
from rich.segment import Segment
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import clamp
from textual.screen import ModalScreen
from textual.widget import Widget

from tfmemtop.findings.limit_texts import basis, typed
from tfmemtop.safe import safe
from tfmemtop.suggested import SuggestedLimit
from tfmemtop.ui.draw.lines import Line, Panel, cannot_be_drawn
from tfmemtop.ui.draw.palette import DIM, KEY, UNICODE, Glyphs
from tfmemtop.ui.panels.key_bar import press_hint
from tfmemtop.ui.screens.drawn import Drawn
from tfmemtop.units import format_bytes

COPY_LINES = "copy the lines"
COPIED = "Copied, if the terminal lets programs set the clipboard."

LIMIT = "Memory limit of the next run"
LIMIT_AS_SCRIPT = "as the script says"
GPUS = "GPUs the next run may see"
GPUS_PROMPT = "Numbers as on this screen, in the order that TensorFlow should use: 0,2"
GPUS_AS_SCRIPT = "as the script and its environment say"
GPUS_NONE = "hide every GPU"
COMMAND_LINE = "Command line of the next run"
COMMAND_LINE_PROMPT = "Variables may stand before the command: BATCH=64 python train.py --epochs 3"

PICTURE = "The picture of the screen"
PICTURE_PROMPT = "The name of a new file. Its ending sets the format: .svg or .txt"
PICTURE_SVG = "in colour, for a browser"
PICTURE_TEXT = "plain text"
PICTURE_SUFFIX = "End the name in .svg for a picture, or in .txt for text."

STAYS = "let it run"
LEAVE = "The script is still running"
LEAVE_RUNNING = "leave it running"
LEAVE_STOPPED = "stop it"
LEAVE_NOT = "do not quit"
LEAVE_STAY = "go on watching"


def more_below(count: int) -> str:
    """Return how many lines of a dialog are below those that are shown."""
    return f"{count} more below"


def whose_limit(on_gpu: bool) -> str:
    """Return what a memory limit applies to."""
    return "each GPU" if on_gpu else "the CPU pool"


def limit_prompt(on_gpu: bool, whole: int | None) -> str:
    """Return how to type a limit; *whole* is the memory there is, in bytes."""
    return f"For {whose_limit(on_gpu)}, of {format_bytes(whole)}: a size such as 4G or 3500M, or 50%"


def limit_suggestions(suggested: Sequence[SuggestedLimit], memory: str | None) -> list[tuple[str, str]]:
    """Return limits to choose from: the text to type, and what it rests on.

    *memory* names the memory of which a percentage is a share, if that is not all of it.
    """
    picks = [("50%", f"half of {memory or 'the memory there is'}"), ("25%", "a quarter of it"), ("", LIMIT_AS_SCRIPT)]
    return [(typed(limit.size), basis(limit)) for limit in suggested] + picks


def file_exists(name: str) -> str:
    """Return the error for the name of a file that exists already. The file is not changed."""
    return f"{name} exists already. Choose another name."


def file_refused(name: str, reason: str) -> str:
    """Return the error for a file that the system does not allow to be written."""
    return f"{name} cannot be written: {reason}."


def picture_written(name: str) -> str:
    """Return where the picture of the screen is stored."""
    return f"The picture is in {name}"


def only_gpu(name: str) -> str:
    """Return the text for the choice of a single GPU."""
    return f"only {name}"


def relaunch(run: int) -> str:
    """Return the title of the question whether to end *run* for the next one."""
    return f"Run {run} is still running"


def relaunch_ends(run: int, processes: int, settings: Sequence[str]) -> str:
    """Return what a relaunch does to *run*, which has that many *processes*; *settings* are the next run's."""
    count = f"{processes} process" + ("" if processes == 1 else "es")
    return f"end it ({count}), then start run {run + 1} with {' · '.join(settings)}"


def relaunch_how(grace_s: float) -> str:
    """Return how a run is ended; *grace_s* is the time in seconds that it has to end by itself."""
    return f"It gets TERM, then KILL after {grace_s:.0f} s."


def output_kept(path: str) -> str:
    """Return where the script's output is stored, to be read later."""
    return f"Its output is kept in {path}"


def attach(session: str) -> str:
    """Return the command that shows the screen again for a script that is left running."""
    return f"tfmemtop attach {session} brings the screen back"


def stop(grace_s: float) -> str:
    """Return what stopping the script does; *grace_s* is the time in seconds that it has to end by itself."""
    return f"TERM, then KILL after {grace_s:.0f} s; then quit"


T = TypeVar("T")

Hint = tuple[str, str]
"""A key and what it does: ``("Enter", "send")``."""

_CHROME = 4
"""Columns of the border and of the blanks beside it."""


class Dialog(Drawn, ModalScreen[T], Generic[T]):
    """A modal box. A subclass returns its lines from :meth:`body` and closes it with ``dismiss(result)``."""

    DEFAULT_CSS = """
    Dialog { align: center middle; }
    Dialog > Vertical {
        background: ansi_default;
        color: ansi_default;
        border: solid ansi_cyan;
        border-title-color: ansi_cyan;
        border-title-style: bold;
        padding: 0 1;
    }
    Dialog.-ascii > Vertical { border: ascii ansi_cyan; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        # Ctrl-C closes the dialog and does nothing else: it must never reach another process.
        Binding("escape,ctrl+c", "cancel", "close", show=False),
        Binding("up", "move(-1)", show=False),
        Binding("down", "move(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("S", "app.picture", show=False),
        Binding("home", "edge(-1)", show=False),
        Binding("end", "edge(1)", show=False),
    ]

    def __init__(self, title: str, *, glyphs: Glyphs = UNICODE, width: int = 76) -> None:
        super().__init__(classes="-ascii" if glyphs.ascii else "")
        self.glyphs = glyphs
        self.top = 0  # the first line shown
        self.lines: list[Line] = []
        self._heading = safe(title)
        self._width = width
        self._text = _Body(self)
        self._hints = _Hints(self)

    def body(self, width: int) -> list[Line]:
        """Return the dialog's lines, none wider than *width* cells."""
        raise NotImplementedError(type(self).__name__)

    def hints(self) -> list[Hint]:
        """Return the keys on the last line."""
        return [("Esc", "close")]

    def fields(self) -> list[Widget]:
        """Return the widgets below the lines, each one line high."""
        return []

    def kept_in_view(self) -> int | None:
        """Return the index of a line that must stay in view, or ``None``."""
        return None

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = Content(self._heading)
            yield self._text
            yield from self.fields()
            yield self._hints

    def on_mount(self) -> None:
        self.redraw()

    def on_resize(self) -> None:
        self.redraw()

    @property
    def heading(self) -> str:
        """The title in the border."""
        return self._heading

    @heading.setter
    def heading(self, text: str) -> None:
        self._heading = safe(text)
        if self.is_mounted:
            self.query_one(Vertical).border_title = Content(self._heading)

    def redraw(self) -> None:
        """Get the lines anew from :meth:`body`, fit the box to them and draw what has changed."""
        box = next(iter(self.query(Vertical)), None)
        if not self.is_mounted or box is None:  # not mounted yet, or about to be removed
            return
        columns, rows = self.app.size
        outer = max(_CHROME + 8, min(self._width, columns * 9 // 10))
        try:
            self.lines = self.body(outer - _CHROME)
            kept = self.kept_in_view()
        except Exception as error:  # whatever it is, the screen below must go on
            self.lines, kept = [cannot_be_drawn("this dialog", error, outer - _CHROME)], None
        fixed = 2 + 2 + len(self.fields())  # the border; the two lines of the hints
        height = clamp(len(self.lines) + fixed, fixed + 1, max(fixed + 1, rows * 9 // 10))
        if (outer, height) != self._fitted:
            self._fitted = (outer, height)
            box.styles.width, box.styles.height = outer, height
        self._page = height - fixed
        self._scroll(kept)
        self._text.redraw()
        self._hints.redraw()

    def follow(self) -> None:
        """Draw anew, and scroll so that the line of :meth:`kept_in_view` is in view again."""
        self._follow = True
        self.redraw()

    _follow = True
    _page = 1
    _fitted = (0, 0)

    def _scroll(self, kept: int | None = None) -> None:
        if kept is not None and self._follow:
            self.top = clamp(self.top, kept - self._page + 1, kept)
        self.top = clamp(self.top, 0, max(0, len(self.lines) - self._page))

    def scroll_lines(self, count: int) -> None:
        """Scroll by *count* lines, down if positive. The line of :meth:`kept_in_view` may go out of view."""
        self._follow = False
        self.top += count
        self._scroll()
        self._text.redraw()
        self._hints.redraw()

    @property
    def hidden(self) -> tuple[int, int]:
        """The numbers of lines that are out of view, above and below."""
        return self.top, max(0, len(self.lines) - self.top - self._page)

    def pressed(self, line: int) -> None:
        """Handle a click on the line with the index *line*."""

    def action_cancel(self) -> None:
        self.dismiss(None)

    def action_move(self, count: int) -> None:
        self.scroll_lines(count)

    def action_page(self, count: int) -> None:
        self.scroll_lines(count * max(1, self._page - 1))

    def action_edge(self, side: int) -> None:
        self.scroll_lines(side * len(self.lines))


class _Body(Panel):
    """The part of the dialog's lines that is in view."""

    def __init__(self, dialog: "Dialog[Any]") -> None:
        super().__init__(glyphs=dialog.glyphs)
        self._dialog = dialog

    def build(self, width: int, height: int) -> list[Line]:
        return self._dialog.lines[self._dialog.top : self._dialog.top + height]

    def on_click(self, click: events.Click) -> None:
        self._dialog.pressed(self._dialog.top + click.y)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self._dialog.scroll_lines(3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self._dialog.scroll_lines(-3)


class _Hints(Panel):
    """The number of lines out of view, and the dialog's keys. If keys do not fit, the last ones are left out."""

    DEFAULT_CSS = "_Hints { height: 2; }"

    def __init__(self, dialog: "Dialog[Any]") -> None:
        super().__init__(glyphs=dialog.glyphs)
        self._dialog = dialog

    def build(self, width: int, height: int) -> list[Line]:
        line: Line = []
        left = width
        for key, meaning in self._dialog.hints():
            left -= cell_len(key) + cell_len(meaning) + 3
            if left < -2:
                break
            line += [Segment(key, KEY), Segment(f" {meaning}  ")]
        return [self._hidden(), line]

    def on_click(self, click: events.Click) -> None:
        """Press the key that was clicked."""
        if click.y == 1:
            click.stop()
            press_hint(self, self._dialog.hints(), click.x)

    def _hidden(self) -> Line:
        above, below = self._dialog.hidden
        parts = []
        if below:
            parts.append(f"{self.glyphs.down} {more_below(below)}")
        if above:
            parts.append(f"{self.glyphs.up} {above} above")
        return [Segment("  ".join(parts), DIM)] if parts else []
