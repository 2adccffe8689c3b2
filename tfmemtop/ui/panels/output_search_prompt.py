"""The prompt of a search in the output: its keys, its text for the panel's title, and scrolling to a match."""

from typing import TYPE_CHECKING, Protocol

from textual import events
from textual.message import Message

from tfmemtop.reports import labels as panels
from tfmemtop.ui.draw.lines import Line, fit
from tfmemtop.ui.draw.palette import Glyphs
from tfmemtop.ui.panels.output_search import OutputSearch
from tfmemtop.ui.panels.process_filter import edited
from tfmemtop.ui.screens.drawn import Changed

if TYPE_CHECKING:
    from tfmemtop.ui.terminal.emulator import TerminalScreen


class View(Protocol):
    """The panel that is searched."""

    scrolled: int
    """Lines scrolled back."""

    @property
    def terminal(self) -> "TerminalScreen": ...

    @property
    def rows(self) -> int:
        """How many lines the panel shows, at least 1."""

    def redraw(self) -> None: ...

    def post_message(self, message: Message) -> bool: ...


class SearchPrompt:
    """The prompt of a search. It receives keys from ``begin`` until Enter, which keeps it, or Esc, which ends it."""

    def __init__(self, view: View) -> None:
        self.open = False
        """Whether keys go into the searched text."""
        self._view = view
        self._search = OutputSearch()

    def forget(self) -> None:
        """End the search, because the output is another one now."""
        self._search = OutputSearch()

    def begin(self) -> None:
        self.open = True
        self._look_for("")
        self._view.post_message(Changed())

    def keep(self) -> None:
        """Receive no more keys; the matches stay marked."""
        self._close(self._search.wanted)

    def end(self) -> None:
        """End the search; the lines in view stay."""
        self._close("")

    def next_match(self, step: int) -> None:
        """Go to the next line with the searched text, or to the one before if *step* is negative."""
        if self._search.wanted:
            self._search.look(self._view.terminal)
            self._search.go(step)
            self._show_match()

    # What is typed.

    def consumes(self, character: str | None) -> bool:
        """Return whether a key with that *character* is text to search for."""
        return self.open and character is not None and character.isprintable()

    def press(self, event: events.Key) -> None:
        """Handle the key, unless it is one that scrolls."""
        if event.key == "enter":
            self.keep()
        elif event.key == "escape":
            self.end()
        elif (text := edited(self._search.wanted, event)) is not None:
            self._look_for(text)
        else:
            return  # arrows and the like still scroll
        event.stop()
        event.prevent_default()

    def paste(self, text: str) -> None:
        self._look_for(self._search.wanted + text.strip())

    # What is shown.

    def title(self, room: int, glyphs: Glyphs) -> tuple[str, ...]:
        """Return texts on the search for a title of *room* cells, the longest first; none if there is no search."""
        wanted = self._search.wanted
        if self.open:
            return ("/" + wanted[-max(4, room - 1) :] + glyphs.limit,)
        return tuple(panels.searched(fit(wanted, 20, glyphs), *self._search.place())) if wanted else ()

    def marked(self, lines: list[Line], first: int) -> list[Line]:
        """Return *lines* with every match marked; *first* is the number of the first of them."""
        self._search.look(self._view.terminal)
        return [self._search.mark(line, number) for number, line in enumerate(lines, first)]

    def _look_for(self, text: str) -> None:
        view = self._view
        self._search.want(text)
        self._search.look(view.terminal)
        self._search.go_near(view.terminal.number(view.scrolled, view.rows) + view.rows - 1)
        self._show_match()

    def _show_match(self) -> None:
        view, at = self._view, self._search.at
        first = view.terminal.number(view.scrolled, view.rows)
        if at is not None and not first <= at < first + view.rows:
            view.scrolled = view.terminal.offset_of(at, view.rows)
        view.redraw()

    def _close(self, wanted: str) -> None:
        self.open = False
        self._search.want(wanted)
        self._view.post_message(Changed())
        self._view.redraw()
