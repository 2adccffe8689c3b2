"""Remedies as lines, with their keys highlighted. Pure."""

from collections.abc import Iterable

from rich.segment import Segment

from tfmemtop.findings.remedy import Remedy, SaidRemedy, offered
from tfmemtop.safe import safe
from tfmemtop.ui.draw.lines import Line, cut, width_of
from tfmemtop.ui.draw.palette import DIM, KEY, PLAIN, UNICODE, Glyphs
from tfmemtop.ui.draw.text import wrap

_BETWEEN = Segment("; ", DIM)


def remedy_line(remedies: Iterable[Remedy], *, steers: bool = True) -> Line:
    """All *remedies* in one line: ``[G] turn growth on; [L] set a limit``."""
    line: Line = []
    for words in offered(remedies, steers=steers):
        line += [_BETWEEN, *_segments(words)] if line else _segments(words)
    return line


def remedy_lines(
    remedies: Iterable[Remedy], width: int, glyphs: Glyphs = UNICODE, *, steers: bool = True, whole: bool = False
) -> list[Line]:
    """Return *remedies* in lines of at most *width* cells. A remedy is not split between two lines.

    If it is longer than a line, it is cut, or, with *whole*, wrapped to the right of its keys.
    """
    lines: list[Line] = []
    for words in offered(remedies, steers=steers):
        part = _segments(words)
        if lines and width_of([*lines[-1], _BETWEEN, *part]) <= width:
            lines[-1] += [_BETWEEN, *part]
        else:
            lines += _wrapped(part, width, glyphs) if whole else [cut(part, width, glyphs)]
    return lines


def _wrapped(part: Line, width: int, glyphs: Glyphs) -> list[Line]:
    *keys, text = part
    before = width_of(keys)
    if width - before < 2:  # the keys alone fill the line
        return [cut(part, width, glyphs)]
    first, *rest = [Segment(line, text.style) for line in wrap(text.text, width - before)]
    return [[*keys, first], *([Segment(" " * before), line] if before else [line] for line in rest)]


def _segments(words: SaidRemedy) -> Line:
    keys = [part for key in words.keys for part in (Segment(f"[{key}]", KEY), Segment(" ", DIM))]
    return [*keys, Segment(safe(words.text), PLAIN)]
