"""The script's own output, as a terminal shows it; and a way to type into it when it asks."""

import time
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message

from tfmemtop.state import State
from tfmemtop.state.model import OutputChunk
from tfmemtop.ui.cells import width
from tfmemtop.ui.keystrokes import encode, encode_paste
from tfmemtop.ui.lines import Line, Panel
from tfmemtop.ui.palette import RULE, UNICODE, Glyphs
from tfmemtop.ui.terminal import TerminalScreen
from tfmemtop.units import format_bytes

_FRAME_CHARACTERS = 64 * 1024  # what a frame can afford: some 20 ms
_CATCH_UP_S = 0.03
_WHEEL_LINES = 3
_SHORTEST_PATH = 12
_TWICE_S = 0.5  # between two escapes that belong together
_CURSOR = Style(reverse=True)


class OutputPanel(Panel, can_focus=True):
    """A terminal of the size that the script has been given, with scroll-back.

    It follows the end unless scrolled. Nothing typed reaches the script before typing has been
    begun, with Enter or ``i``; ``can_type`` is false where nothing may be sent.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,i", "type", "type to the script", show=False),
        Binding("up", "scroll(1)", "scroll up", show=False),
        Binding("down", "scroll(-1)", "scroll down", show=False),
        Binding("pageup", "page(1)", "a page up", show=False),
        Binding("pagedown", "page(-1)", "a page down", show=False),
        Binding("home", "to_start", "to the oldest line", show=False),
        Binding("end", "to_end", "follow the end", show=False),
    ]

    class Typed(Message):
        """The user typed *text* for the script."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Resized(Message):
        """The room for the script's terminal is now *columns* by *rows* cells."""

        def __init__(self, columns: int, rows: int) -> None:
            super().__init__()
            self.columns = columns
            self.rows = rows

    def __init__(self, *, glyphs: Glyphs = UNICODE, id: str | None = None) -> None:
        super().__init__(glyphs=glyphs, id=id)
        self.can_type = True
        self.typing = False
        self._room = (80, 24)
        self._escaped_at = float("-inf")
        self._catching_up = False
        self._begin()

    def _begin(self) -> None:
        self.terminal = TerminalScreen(*self._terminal_size())
        self._next = 0  # number of the chunk that comes next
        self._run: int | None = None
        self._offset = 0  # lines scrolled back
        self._seen_off = 0

    def _terminal_size(self) -> tuple[int, int]:
        # What the script has been told decides; the room here is what it shall be told.
        told = self.state.terminal
        return (max(1, told.columns), max(1, told.rows)) if told else self._room

    # What comes.

    def show(self, state: State) -> None:
        if state is not self.state:
            self.state = state  # a replay has gone back
            self._begin()
        self.redraw()

    def build(self, width: int, height: int) -> list[Line]:
        rows = height - 1
        if rows < 1:
            return [self._title(width)]
        if (width, rows) != self._room:
            self._room = (width, rows)
            self.post_message(self.Resized(width, rows))
        if (self.terminal.columns, self.terminal.rows) != self._terminal_size():
            self.terminal.resize(*self._terminal_size())
        self._take()
        if self.typing and not self._accepts():
            self.typing = False
        self._offset = min(self._offset, self.terminal.most(rows))
        lines = self.terminal.lines(self._offset, rows)
        if self.typing and (cursor := self.terminal.cursor(self._offset, rows)):
            x, y = cursor
            lines[y:] = [_with_cursor(lines[y] if y < len(lines) else [], x), *lines[y + 1 :]]
        return [self._title(width), *lines]

    def _take(self) -> None:
        """Feed the terminal what is new, as much of it as a frame can afford."""
        state, taken, waiting = self.state, 0, False
        for chunk in state.output if self._next < state.output_count else ():
            if chunk.number < self._next:
                continue
            if taken > _FRAME_CHARACTERS:
                waiting = True
                break
            self._take_chunk(chunk)
            taken += len(chunk.text)
        if self._offset:
            # Scrolled back, the same lines stay in sight while others come.
            self._offset = max(0, self._offset + self.terminal.scrolled_off - self._seen_off)
        self._seen_off = self.terminal.scrolled_off
        if waiting and not self._catching_up:
            self._catching_up = True
            self.set_timer(_CATCH_UP_S, self._catch_up)

    def _catch_up(self) -> None:
        self._catching_up = False
        self.redraw()

    def _take_chunk(self, chunk: OutputChunk) -> None:
        if self._run is not None and chunk.run != self._run:
            self.terminal.rule(self._rule(f"run {chunk.run}"))
        if chunk.number > self._next or chunk.skipped:
            size = f"{format_bytes(chunk.skipped)} left out" if chunk.skipped else "earlier output left out"
            whole = f", whole in {self._path()}" if self._path() else ""
            self.terminal.note(f"{self.glyphs.ellipsis} {size}{whole}")
        self._run, self._next = chunk.run, chunk.number + 1
        self.terminal.feed(chunk.text)

    def _rule(self, text: str) -> Line:
        dash = self.glyphs.rule
        return [Segment(f"{dash * 2} {text} {dash * 2}", RULE)]

    def _path(self) -> str:
        session = self.state.session
        return (session.output_path or "") if session else ""

    # What is shown about it.

    def _title(self, width: int) -> Line:
        room = width - 16
        if self.typing:
            right = _first_fit(room, "typing: Ctrl-] or Esc Esc ends", "typing, ends: Ctrl-]", "Ctrl-] ends")
        elif self._offset:
            lines = f"{self._offset} line{'s' * (self._offset != 1)}"
            right = _first_fit(room, f"scrolled {lines} {self.glyphs.more}", f"{lines} {self.glyphs.more}")
        else:
            asks = "i types" if self.has_focus and self._accepts() else ""
            path = self._path()
            if path and (short := room - cell_len(asks) - 2 * bool(asks)) >= _SHORTEST_PATH:
                # Its end is what tells it from others.
                path = path if len(path) <= short else self.glyphs.ellipsis + path[1 - short :]
                right = f"{asks}  {path}".strip()
            else:
                right = asks
        return self.title_line(width, "Output", right, chosen=self.has_focus)

    # Scrolling.

    def action_scroll(self, lines: int) -> None:
        self._offset = max(0, self._offset + lines)
        self.redraw()

    def action_page(self, pages: int) -> None:
        self.action_scroll(pages * max(1, self._room[1] - 1))

    def action_to_start(self) -> None:
        self.action_scroll(self.terminal.most(self._room[1]))

    def action_to_end(self) -> None:
        self.action_scroll(-self._offset)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.action_scroll(_WHEEL_LINES)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.action_scroll(-_WHEEL_LINES)

    # Typing.

    def _accepts(self) -> bool:
        run = self.state.run
        return self.can_type and run is not None and run.going

    def action_type(self) -> None:
        """Begin to type to the script, if there is one to take it."""
        if self._accepts():
            self.typing = True
            self._offset = 0
            self.redraw()

    def _end_typing(self) -> None:
        self.typing = False
        self._escaped_at = float("-inf")
        self.redraw()

    def on_key(self, event: events.Key) -> None:
        if not self.typing:
            return
        # Every key is the script's now: none may reach a binding, be it a panel's or the app's.
        event.stop()
        event.prevent_default()
        now = time.monotonic()
        if event.key == "ctrl+right_square_bracket" or (event.key == "escape" and now - self._escaped_at < _TWICE_S):
            self._end_typing()
            return
        self._escaped_at = now if event.key == "escape" else float("-inf")
        self._send(encode(event.key, event.character, self.terminal.application_cursor))

    def on_paste(self, event: events.Paste) -> None:
        if self.typing:
            event.stop()
            self._send(encode_paste(event.text, self.terminal.bracketed_paste))

    def _send(self, text: str | None) -> None:
        if text:
            self._offset = 0
            self.post_message(self.Typed(text))

    def on_focus(self) -> None:
        self.redraw()

    def on_blur(self) -> None:
        self._end_typing()


def _first_fit(width: int, *texts: str) -> str:
    return next((text for text in texts if cell_len(text) <= width), texts[-1])


def _with_cursor(line: Line, x: int) -> Line:
    padded = [*line, Segment(" " * (x + 1))]
    start = end = 0
    for character in "".join(segment.text for segment in padded):
        # An accent has no cell of its own, a wide character has two: the cursor covers it whole.
        start, end = end, end + width(character)
        if end > x:
            break
    total = sum(segment.cell_length for segment in padded)
    before, under, after = Segment.divide(padded, [start, end, total])
    return [*before, *(Segment(segment.text, (segment.style or Style()) + _CURSOR) for segment in under), *after]
