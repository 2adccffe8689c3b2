"""The panel of the script's output, as a terminal shows it. The user can also type to the script here."""

import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from textual import events
from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.timer import Timer

from tfmemtop.events import Output
from tfmemtop.state import State
from tfmemtop.ui.draw.glyphs import ELLIPSIS, LINE, MORE
from tfmemtop.ui.draw.lines import Line, with_cursor, wrapped
from tfmemtop.ui.draw.palette import DIM, RULE
from tfmemtop.ui.keys import TYPING, Hints
from tfmemtop.ui.panels.row_table import CursorPanel
from tfmemtop.ui.screens import Changed
from tfmemtop.units import format_bytes

if TYPE_CHECKING:
    from tfmemtop.ui.terminal.screen import TerminalScreen


_FRAME_S = 0.02
_PIECE = 64  # characters that are drawn before the clock is read again
_CATCH_UP_S = 0.1
_SHORTEST_PATH = 12
_TWICE_S = 0.5  # between two presses of Esc that belong together


class OutputPanel(CursorPanel):
    """A terminal of the size that the script has been given, with scroll-back.

    It shows the end of the output unless the user has scrolled back. Keys are sent to the script only after the user
    has begun to type, with Enter or ``i``. ``can_type`` is false if nothing may be sent. ``frame_s`` is the CPU time
    that a frame may spend on new output.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,i", "type", "type to the script", show=False),
    ]

    @dataclass
    class Typed(Message):
        """The user typed ``text`` for the script."""

        text: str

    def __init__(self, *, can_type: bool = True) -> None:
        super().__init__()
        self.can_type = can_type
        self.typing = False
        self.frame_s = _FRAME_S
        self._area = (80, 24)
        self._escaped_at = float("-inf")
        self._catching_up: Timer | None = None
        self._begin()

    def _begin(self) -> None:
        self._terminal: TerminalScreen | None = None
        self._next = 0  # number of the chunk that comes next, or of which a part has been taken
        self._at = 0  # characters of it that have been taken
        self._run: int | None = None
        self.scrolled = 0  # lines scrolled back
        self._seen_off = 0

    @property
    def terminal(self) -> "TerminalScreen":
        """The emulated terminal. Its module is imported here, since a screen without a script does not need it."""
        if self._terminal is None:
            from tfmemtop.ui.terminal.screen import TerminalScreen

            self._terminal = TerminalScreen(*self._terminal_size())
        return self._terminal

    def _terminal_size(self) -> tuple[int, int]:
        # The size that the script has been given counts; before that, the room here, which it may be given.
        told = self.state.terminal
        return (max(1, told.columns), max(1, told.rows)) if told else self._area

    @property
    def mode(self) -> Hints:
        """The keys for typing to the script, while the user does so; else none."""
        return TYPING if self.typing else ()

    # New output.

    @property
    def behind(self) -> bool:
        """Whether there is output that no frame has had time for yet."""
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
        self._area, self.room = (width, rows), rows
        if (self.terminal.columns, self.terminal.lines) != self._terminal_size():
            columns, lines_ = self._terminal_size()
            self.terminal.resize(lines_, columns)
        self._take()
        if self.typing and not self._accepts():
            self._end_typing()
        wraps = self.terminal.columns > width and not self.typing
        most = self.terminal.most(rows)
        above = max(0, self.scrolled - most)
        self.scrolled = min(self.scrolled, most)
        if not self.state.output_count and not self.typing:
            # Only a command of ``tfmemtop record`` is shown here without a terminal that it got from tfmemtop.
            told = "no output so far" if self.state.terminal else "the command has a terminal of its own"
            return [self._title(width), [Segment(f" {told}"[:width], DIM)]]
        lines = self.terminal.view(self.scrolled, rows)
        if wraps:
            lines = self._wrapped(lines, width, rows, above)
        if self.typing and (cursor := self.terminal.cursor_in(self.scrolled, rows)):
            x, y = cursor
            lines[y:] = [with_cursor(lines[y] if y < len(lines) else [], x), *lines[y + 1 :]]
        return [self._title(width), *lines]

    def _wrapped(self, lines: list[Line], width: int, rows: int, above: int) -> list[Line]:
        """Return the last *rows* rows of *lines*, wrapped to *width* cells.

        The terminal of a recording may have been wider than this panel. *above* is by how many rows the user has
        scrolled further back than there are unwrapped lines, to read the beginning of the first ones.
        """
        whole = [part for line in lines for part in wrapped(line, width)]
        while len(whole) > rows and not whole[-1]:
            whole.pop()  # empty lines at the end need not be shown
        above = min(above, max(0, len(whole) - rows))
        self.scrolled += above
        return whole[max(0, len(whole) - rows - above) :][:rows]

    def _take(self) -> None:
        """Feed new output to the terminal, as much as a frame has time for. What the state has dropped is left out."""
        until = time.thread_time() + self.frame_s
        output = self.state.output
        for number, chunk in enumerate(output, self.state.output_count - len(output)) if self.behind else ():
            if number < self._next:
                continue
            if number > self._next or not self._at:
                self._begin_chunk(number, chunk)
            while self._at < len(chunk.text) and time.thread_time() < until:
                self.terminal.feed(chunk.text[self._at : self._at + _PIECE])
                self._at += _PIECE
            if self._at < len(chunk.text):
                break
            self._next, self._at = number + 1, 0
        if self.scrolled:
            # While scrolled back, the same lines stay in view as new ones arrive.
            self.scrolled = max(0, self.scrolled + self.terminal.scrolled_off - self._seen_off)
        self._seen_off = self.terminal.scrolled_off
        if self._catching_up:
            self._catching_up.stop()
        self._catching_up = self.set_timer(_CATCH_UP_S, self.redraw) if self.behind else None

    def _begin_chunk(self, number: int, chunk: Output) -> None:
        unseen = number > self._next
        if self._run is not None and chunk.run != self._run:
            self.terminal.rule(self._rule(f"run {chunk.run}"))
        if unseen or chunk.skipped:
            size = "earlier output" if unseen else format_bytes(chunk.skipped)
            see = f", see {path}" if (path := self._path()) else ""
            self.terminal.note(f"{ELLIPSIS} {size} left out{see}")
        self._run, self._next, self._at = chunk.run, number, 0

    def _rule(self, text: str) -> Line:
        dash = LINE
        return [Segment(f"{dash * 2} {text} {dash * 2}", RULE)]

    def _path(self) -> str:
        session = self.state.session
        return (session.output_path or "") if session else ""

    # The title.

    def _title(self, width: int) -> Line:
        room = width - 16
        if self.typing:
            right = _first_fit(room, "typing: Ctrl-] or Esc Esc ends", "typing, ends: Ctrl-]", "Ctrl-] ends")
        elif self.scrolled:
            lines = f"{self.scrolled} line{'s' * (self.scrolled != 1)}"
            right = _first_fit(room, f"scrolled {lines} {MORE}", f"{lines} {MORE}")
        else:
            asks = "i types" if self._accepts() and self.has_focus else ""
            path = self._path()
            if path and (short := room - cell_len(asks) - 2 * bool(asks)) >= _SHORTEST_PATH:
                # Paths differ in their ends, so the end is kept.
                path = path if len(path) <= short else ELLIPSIS + path[1 - short :]
                right = f"{asks}  {path}".strip()
            else:
                right = asks
        return self.title_line(width, "Output", right, chosen=self.has_focus)

    def move(self, count: int) -> None:
        """Scroll by *count* lines, down if positive."""
        self.scrolled = max(0, self.scrolled - count)
        self.redraw()

    def check_consume_key(self, key: str, character: str | None) -> bool:
        return self.typing

    # Typing.

    def _accepts(self) -> bool:
        run = self.state.run
        return self.can_type and run is not None and run.going

    def action_type(self) -> None:
        """Begin to send keys to the script, if one is running and may receive them; else tell the user why not."""
        if self._accepts():
            self.typing = True
            self.scrolled = 0
            self.post_message(Changed())
            self.redraw()
        elif self.can_type:
            self.notify("No script is running to read what is typed.")
        else:
            self.notify("Nothing can be typed here: this screen changes nothing.")

    def _end_typing(self) -> None:
        if self.typing:
            self.post_message(Changed())
        self.typing = False
        self._escaped_at = float("-inf")
        self.redraw()

    def on_key(self, event: events.Key) -> None:
        if not self.typing:
            return
        # Every key goes to the script now. No binding of a panel or of the app may handle it.
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
            self.scrolled = 0
            self.post_message(self.Typed(text))

    def on_focus(self) -> None:
        self.redraw()

    def on_blur(self) -> None:
        self._end_typing()


def _first_fit(width: int, *texts: str) -> str:
    return next((text for text in texts if cell_len(text) <= width), texts[-1])


_CURSOR_KEYS = ("up", "down", "right", "left", "home", "end")
_KNOWN = [
    (named[0].value, sequence)
    for sequence, named in reversed(list(ANSI_SEQUENCES_KEYS.items()))
    if isinstance(named, tuple) and len(named) == 1 and not sequence.startswith("\x1b[[")  # the console's own
]
_SEQUENCES = dict(sorted(_KNOWN, key=lambda one: (";" in one[1], -len(one[1]))))
_SEQUENCES |= {"backspace": "\x7f", "shift+tab": "\x1b[Z", "shift+enter": "\r"}
"""What a terminal sends for each key that Textual knows: of its sequences xterm's, or else the shortest."""


def encode(key: str, character: str | None, application_cursor: bool = False) -> str | None:
    """Return what a terminal sends for *key*, which is Textual's name of it; ``None`` if it sends nothing.

    *character* is what the key prints, if anything. With *application_cursor*, arrows, home and end
    are sent in the form that programs request with the mode DECCKM.
    """
    if application_cursor and key in _CURSOR_KEYS:
        return f"\x1bO{_SEQUENCES[key][-1]}"
    if sequence := _SEQUENCES.get(key):
        return sequence
    if character is not None and character.isprintable():
        return character
    if re.fullmatch("ctrl\\+[a-z]", key):
        return chr(ord(key[-1]) & 0x1F)
    if key.startswith("alt+"):
        base = key.removeprefix("alt+")
        sent = encode(base, base if len(base) == 1 else None)
        return sent and f"\x1b{sent}"
    return None


def encode_paste(text: str, bracketed: bool) -> str:
    """Return what a terminal sends for pasted *text*; *bracketed* if the program has requested marks around it."""
    text = text.replace("\r\n", "\r").replace("\n", "\r")
    # Pasted text must not contain the mark that ends it.
    return f"\x1b[200~{text.replace(chr(27), '')}\x1b[201~" if bracketed else text
