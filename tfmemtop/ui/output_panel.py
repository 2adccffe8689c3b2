"""The script's own output, as a terminal shows it; and a way to type into it when it asks."""

import time
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.timer import Timer

from tfmemtop.state import State
from tfmemtop.state.model import OutputChunk
from tfmemtop.ui.cells import width
from tfmemtop.ui.keystrokes import encode, encode_paste
from tfmemtop.ui.lines import Line, Panel
from tfmemtop.ui.palette import RULE, UNICODE, Glyphs
from tfmemtop.ui.terminal import TerminalScreen
from tfmemtop.units import format_bytes

_FRAME_S = 0.02
_FRAME_MOST = 64 * 1024  # characters taken for what that is enough for, until it has been measured
_FRAME_LEAST = 64  # enough for what costs most, and for a measurement
_CLOCK_S = 1e-5
_BEHIND = 8  # frames' worth of output that may wait; where there is more, all but the newest is left out
_CATCH_UP_S = 0.1
_LINE = 1024  # characters in which the end of a line is looked for
_WHEEL_LINES = 3
_SHORTEST_PATH = 12
_TWICE_S = 0.5  # between two escapes that belong together
_CURSOR = Style(reverse=True)


class OutputPanel(Panel, can_focus=True):
    """A terminal of the size that the script has been given, with scroll-back.

    It follows the end unless scrolled. Nothing typed reaches the script before typing has been
    begun, with Enter or ``i``; ``can_type`` is false where nothing may be sent. ``frame_s`` is the CPU time
    that a frame may spend on new output.
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

    def __init__(self, *, glyphs: Glyphs = UNICODE, id: str | None = None) -> None:
        super().__init__(glyphs=glyphs, id=id)
        self.can_type = True
        self.typing = False
        self.frame_s = _FRAME_S
        self._room = (80, 24)
        self._escaped_at = float("-inf")
        self._catching_up: Timer | None = None
        self._affordable = _FRAME_MOST  # characters that a frame has time for
        self._begin()

    def _begin(self) -> None:
        self.terminal = TerminalScreen(*self._terminal_size())
        self._next = 0  # number of the chunk that comes next, or of which a part has been taken
        self._at = 0  # characters of it that have been taken
        self._left_out = 0  # bytes before it, of which nothing has been said yet
        self._unseen = False  # whether there were more, nobody knows how many
        self._run: int | None = None
        self._offset = 0  # lines scrolled back
        self._seen_off = 0

    def _terminal_size(self) -> tuple[int, int]:
        # What the script has been told decides; the room here is what it may be told.
        told = self.state.terminal
        return (max(1, told.columns), max(1, told.rows)) if told else self._room

    # What comes.

    @property
    def behind(self) -> bool:
        """Whether there is output for which no frame has had time yet."""
        return self._next < self.state.output_count

    def show(self, state: State) -> None:
        if state is not self.state:
            self.state = state  # a replay has gone back
            self._begin()
        self.redraw()

    def build(self, width: int, height: int) -> list[Line]:
        rows = height - 1
        if rows < 1:
            return [self._title(width)]
        self._room = (width, rows)
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
        """Feed the terminal what is new, as much of it as a frame has time for."""
        chunks = [chunk for chunk in self.state.output if chunk.number >= self._next] if self.behind else []
        if chunks and chunks[0].number > self._next:
            self._at = 0  # what was left of that one has gone
        waiting = sum(len(chunk.text) for chunk in chunks) - self._at
        # A screen shows the newest, however much a script prints.
        leave = waiting - self._affordable if waiting > _BEHIND * self._affordable else 0
        taken, begun = 0, time.thread_time()
        for chunk in chunks:
            if not self._at:
                self._begin_chunk(chunk)
            if leave > 0:
                leave -= self._leave_out(chunk, leave)
            if self._at < len(chunk.text):
                self._say_what_is_left_out()
                count = self.terminal.feed(chunk.text[self._at :], begun + self.frame_s)
                self._at += count
                taken += count
            if self._at < len(chunk.text):
                break
            self._next, self._at = chunk.number + 1, 0
        self._measure(taken, time.thread_time() - begun)
        if self._offset:
            # Scrolled back, the same lines stay in sight while others come.
            self._offset = max(0, self._offset + self.terminal.scrolled_off - self._seen_off)
        self._seen_off = self.terminal.scrolled_off
        if self._catching_up:
            self._catching_up.stop()
        self._catching_up = self.set_timer(_CATCH_UP_S, self.redraw) if self.behind else None

    def _measure(self, taken: int, spent_s: float) -> None:
        """Learn what a frame has time for; one slow frame alone, such as the first, tells little."""
        if spent_s >= self.frame_s:
            self._affordable = max(taken, self._affordable // 4, _FRAME_LEAST)
        elif taken >= _FRAME_LEAST:
            enough = int(taken * self.frame_s / max(spent_s, _CLOCK_S))
            self._affordable = min(max(enough, self._affordable), _FRAME_MOST)

    def _begin_chunk(self, chunk: OutputChunk) -> None:
        if self._run is not None and chunk.run != self._run:
            self._say_what_is_left_out()
            self.terminal.rule(self._rule(f"run {chunk.run}"))
        self._left_out += chunk.skipped
        self._unseen |= chunk.number > self._next
        self._run, self._next = chunk.run, chunk.number

    def _leave_out(self, chunk: OutputChunk, count: int) -> int:
        """Pass over *count* characters of *chunk*, and what remains of the line there; how many that were."""
        end = min(self._at + count, len(chunk.text))
        end = chunk.text.find("\n", end, end + _LINE) + 1 or end
        passed = chunk.text[self._at : end]
        self._at = end
        self._left_out += len(passed.encode(errors="replace"))
        return len(passed)

    def _say_what_is_left_out(self) -> None:
        if self._left_out or self._unseen:
            size = "earlier output" if self._unseen else format_bytes(self._left_out)
            kept = f", see {self._path()}" if self._path() else ""
            self.terminal.note(f"{self.glyphs.ellipsis} {size} left out{kept}")
        self._left_out, self._unseen = 0, False

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
