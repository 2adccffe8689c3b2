"""The emulated terminal: it shows whatever programs write as other terminals show it."""

import codecs
import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.segment import Segment

from tests.ui.shown import line_text, rows
from tfmemtop.ui.terminal.screen import TerminalScreen


def shown(screen: TerminalScreen, offset: int = 0, height: int | None = None) -> list[str]:
    return rows(screen.view(offset, height or screen.lines))


def after(text: str, columns: int = 20, rows: int = 5) -> TerminalScreen:
    screen = TerminalScreen(columns, rows)
    screen.feed(text)
    return screen


class Program:
    """A program in a real pseudo-terminal, and the screen it writes to."""

    def __init__(self, code: str, columns: int = 40, rows: int = 10) -> None:
        self.screen = TerminalScreen(columns, rows)
        self._decode = codecs.getincrementaldecoder("utf-8")().decode
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        environment = {**os.environ, "TERM": "xterm-256color", "PYTHONUTF8": "1"}
        environment = {name: value for name, value in environment.items() if name not in ("LINES", "COLUMNS")}
        self._process = subprocess.Popen(
            ["bash", "-c", code],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=environment,
            start_new_session=True,
        )
        os.close(theirs)

    def until(self, text: str) -> None:
        """Read until *text* is on the screen."""
        while not any(text in line for line in shown(self.screen)):
            assert self._read(), f"{text!r} never came: {shown(self.screen)}"

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def end(self) -> list[str]:
        """Read until the program has closed its terminal, and return the lines that are then shown."""
        while self._read():
            pass
        os.close(self._ours)
        self._process.wait()
        return shown(self.screen)

    def _read(self) -> bool:
        try:
            written = os.read(self._ours, 700)  # 700 bytes may end anywhere, also within a character
        except OSError:
            return False  # on Linux: the other side has been closed
        self.screen.feed(self._decode(written))
        return bool(written)


# Programs in a real pseudo-terminal.


@pytest.mark.programs
def test_a_progress_bar_is_one_line_that_changes() -> None:
    program = Program(r"for i in 1 2 3; do printf '\rstep %d/3 ###' $i; done; echo; echo done")
    assert program.end()[:3] == ["step 3/3 ###", "done", ""]


_CURSES = """
import curses
def main(screen):
    screen.box(); screen.addstr(2, 3, "epoch 1", curses.A_REVERSE); screen.getkey()
    screen.addstr(2, 9, "2"); screen.hline(4, 1, "=", 30); screen.getkey()
print("before"); curses.wrapper(main); print("after")
"""


@pytest.mark.programs
def test_a_curses_program(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(_CURSES)
    program = Program(f"{sys.executable} {tmp_path}/program.py")
    program.until("──┘")
    assert "epoch 1" in shown(program.screen)[2]
    assert shown(program.screen)[0].startswith("┌───") and shown(program.screen)[9].endswith("──┘")
    program.type("x")
    program.until("=" * 30)
    assert "epoch 2" in shown(program.screen)[2]
    program.type("x")
    assert [line for line in program.end() if line] == ["before", "after"]


# Each of these tests checks one behaviour.


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("\x1b]8;;https://x\x1b\\link\x1b]8;;\x07!", "link!"),
        ("\x1b]0;title\x07ab", "ab"),
        ("\x1b[9Jab\x1b[7Kc", "abc"),  # ways to erase that do not exist
        ("\x1b[1;2;3;4Aab", "ab"),  # too many parameters
        ("\x1b[?6h\x1b[1dab", "ab"),  # origin mode without margins
        pytest.param("\x1b[" + "1" * 5000 + "m", "", id="a number without end"),
        ("a\x1b[3\nb", "a"),
        ("x\x1b[5b!", "xxxxxx!"),  # repeat
        ("\x1b(0qqq\x1b(Bq", "───q"),  # line drawing
        ("ab\x00\x07c", "abc"),
        ("❤️👩‍💻|", "❤👩💻|"),
        ("อักษร", "อักษร"),
    ],
)
def test_what_is_not_known_is_left_out_whole(written: str, expected: str) -> None:
    assert shown(after(written))[0] == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("1", "bold"),
        ("31;44", "red on blue"),
        ("38;5;208", "#ff8700"),
        ("38;2;1;2;3", "#010203"),
        ("38;2;999;0;0", "none"),
    ],
)
def test_colours_and_attributes(code: str, expected: str) -> None:
    segment = after(f"\x1b[{code}mx").view(0, 1)[0][0]
    assert str(segment.style) == expected


def test_scroll_back_keeps_what_has_scrolled_off_and_no_more_than_it_may() -> None:
    screen = TerminalScreen(20, 3, history=10)
    screen.feed("".join(f"line {n}\r\n" for n in range(30)))
    assert shown(screen) == ["line 28", "line 29", ""]
    assert shown(screen, 2) == ["line 26", "line 27", "line 28"]
    assert shown(screen, 999)[0] == "line 18"
    assert screen.most(3) == 10 and screen.scrolled_off == 28


def test_a_long_line_is_broken_between_words_once_the_program_has_left_it() -> None:
    screen = TerminalScreen(12, 4)
    screen.feed("failed to allocate 4 bytes")
    assert shown(screen)[:3] == ["failed to al", "locate 4 byt", "es"], "the program may still move in it"
    assert screen.cursor_in(0, 4) == (2, 2)
    screen.feed("\r\n")
    assert shown(screen)[:3] == ["failed to ", "allocate 4 ", "bytes"]
    screen.feed("a word without end\r\nabcdefghijklmno\r\n")
    assert shown(screen, 50, 50)[:7] == [
        "failed to ", "allocate 4 ", "bytes", "a word ", "without end", "abcdefghijkl", "mno",
    ]  # fmt: skip
    assert shown(screen, 3, 2) == ["a word ", "without end"], "wherever the view begins"


def test_rows_that_a_program_has_placed_are_not_broken_anew() -> None:
    screen = TerminalScreen(12, 4)
    screen.feed("failed to allocate\r\n\x1b[2A\x1b[2Ksaving files\x1b[2B\r")
    assert shown(screen)[:2] == ["saving files", "locate"]
    screen.feed("\x1b[?1049h\x1b[Hfailed to allocate\r\n")  # on the alternate screen
    assert shown(screen)[:2] == ["failed to al", "locate"]


def test_a_note_overwrites_nothing() -> None:
    screen = TerminalScreen(40, 4)
    for cut in ("one", "two\r", "three\r\n"):
        screen.feed(cut)
        screen.note("left out")
    assert shown(screen, 50, 6) == ["one", "left out", "two", "left out", "three", "left out"]


def test_a_narrower_screen_cuts_its_lines() -> None:
    screen = after("0123456789\r\nabc", 12, 4)
    screen.resize(4, 5)
    screen.feed("d")
    assert shown(screen)[:2] == ["01234", "abcd"]


def test_a_higher_screen_leaves_an_earlier_run_where_it_is() -> None:
    screen = after("old\r\n", 10, 2)
    screen.rule([Segment("--")])
    screen.feed("1\r\n2\r\n3")
    screen.resize(5, 10)
    assert shown(screen) == ["1", "2", "3", "", ""]
    assert shown(screen, 99, 5) == ["old", "--", "1", "2", "3"]


def test_a_resize_while_a_program_fills_the_screen_keeps_what_is_behind_it() -> None:
    screen = after("a\r\nb\r\nc\r\n\x1b[?1049hfull", 10, 4)
    screen.resize(2, 10)
    screen.feed("\x1b[?1049l")
    assert shown(screen) == ["c", ""] and shown(screen, 2) == ["a", "b"]


def test_a_view_lower_than_the_screen_shows_where_it_is_written() -> None:
    screen = after("a\r\nb\r\nc", 10, 20)
    assert shown(screen, 0, 2) == ["b", "c"]
    assert screen.cursor_in(0, 2) == (1, 1)


# Any text, and any cut or change of size.

_pieces = st.lists(
    st.one_of(
        st.text(max_size=10),
        st.sampled_from(
            ["\x1b", "\x1b[", "\x1b]", "\x1bP", "\x1b\\", "\r", "\n", "\b", "\t", "\x9b", "漢", "👩‍💻", "🇩🇪"]
        ),
        st.from_regex(r"\x1b\[[<=>?]?[0-9;:]{0,6}[ $!]?[@-~]", fullmatch=True),
        st.from_regex(r"\x1b\[[0-9]{0,2};?[0-9]{0,2}[A-HJKLMPSTXZdfr]", fullmatch=True),
        st.from_regex(r"\x1b\[\?(1|3|5|6|7|25|47|1047|1048|1049|2004)[hl]", fullmatch=True),
        st.from_regex(r"\x1b[ #%()]?[0-~]", fullmatch=True),
    ),
    max_size=30,
)
_size = st.tuples(st.integers(1, 12), st.integers(1, 5))


@pytest.mark.long
@given(st.lists(st.one_of(_pieces, _size), max_size=6), _size)
def test_nothing_raises_and_every_line_fits(steps: list[list[str] | tuple[int, int]], size: tuple[int, int]) -> None:
    screen = TerminalScreen(*size, history=20)
    for step in steps:
        if isinstance(step, tuple):
            screen.resize(step[1], step[0])
        else:
            screen.feed("".join(step))
        for height in (1, screen.lines, 30):
            for offset in (0, 3, 100):
                lines = screen.view(offset, height)
                assert len(lines) <= height
                assert all(sum(cell_len(segment.text) for segment in line) <= screen.columns for line in lines)
                assert not any(ord(c) < 32 or "\ud800" <= c <= "\udfff" for line in lines for c in line_text(line))
            cursor = screen.cursor_in(0, height)
            assert cursor is None or (0 <= cursor[0] < screen.columns and 0 <= cursor[1] < height)


@given(_pieces, st.data())
def test_a_cut_anywhere_changes_nothing(pieces: list[str], data: st.DataObject) -> None:
    text = "".join(pieces)
    whole, cut = TerminalScreen(8, 4), TerminalScreen(8, 4)
    whole.feed(text)
    at = data.draw(st.integers(0, len(text)))
    cut.feed(text[:at])
    cut.view(0, 4)  # draws between the two parts
    cut.feed(text[at:])
    assert cut.view(0, 4) == whole.view(0, 4)
    assert cut.cursor_in(0, 4) == whole.cursor_in(0, 4)
    assert cut.view(50, 50) == whole.view(50, 50)


_lines = st.lists(st.text(st.characters(codec="ascii", categories=["L", "N"]), max_size=8), max_size=20)


@given(_lines, st.lists(st.tuples(st.integers(0, 20), st.integers(8, 12), st.integers(1, 9)), max_size=4))
def test_no_line_is_lost_or_doubled_however_the_size_changes(
    lines: list[str], resizes: list[tuple[int, int, int]]
) -> None:
    screen = TerminalScreen(8, 3, history=100)
    for n, line in enumerate(lines):
        for at, columns, height in resizes:
            if at == n:
                screen.resize(height, columns)
        screen.feed(f"{line}\r\n")
    assert [text for text in shown(screen, 0, 200) if text] == [line for line in lines if line]
