"""Make text from outside harmless before it is drawn or printed. Pure.

Names, paths, messages, arguments, command lines and everything else that a script, a driver, a recording or another
user wrote pass through :func:`safe`. It treats characters like this:

========================================================  ==========================================================
line breaks, tabs, line and paragraph separators, blanks  a blank: the text stays on its line
control characters, C0 and C1, with ESC and DEL           ``?``: none can start a sequence that controls the terminal
invisible format characters: bidi overrides, joiners,     ``?``: none can turn the direction of writing, or hide
zero-width blanks, soft hyphens, tags, fillers            what is between two others
lone surrogates, unassigned characters                    ``?``: they cannot be encoded, or have no known width
variation selectors                                       left out: terminals disagree on which of them widen text
more than eight marks on one character                    left out from the ninth on
========================================================  ==========================================================

Everything else stays as it is. That includes private characters, which fonts for terminals use. A second pass through
:func:`safe` changes nothing.
"""

import re
import unicodedata
from functools import lru_cache

_MARKS = 8  # on one character: no writing system needs as many
_CACHED = 1024  # characters; longer texts are rare, and caching them would take much memory
_BLANKS = frozenset("\t\n\v\f\r\x85\u2028\u2029")
_UNSAFE = frozenset(("Cc", "Cf", "Cs", "Cn"))
_FILLERS = frozenset("\u115f\u1160\u17b4\u17b5\u3164\uffa0")  # Unicode counts them as letters, but they are invisible

# The characters that are drawn all the time: blocks of Unicode in which all characters are safe.
_PLAIN = re.compile(
    "[ -~\xa1-\xac\xae-\u02ff\u0400-\u0482\u2010-\u2027\u2030-\u205e\u2100-\u218b\u2190-\u2426\u2460-\u2b73"
    "\u3041-\u3096\u4e00-\u9ffc\uac00-\ud7a3]*"
).fullmatch


def safe(text: str) -> str:
    """Return *text* on one line, without characters that would control the terminal or deceive the reader."""
    if (text.isascii() and text.isprintable()) or _PLAIN(text):
        return text
    return _remembered(text) if len(text) <= _CACHED else _cleaned(text)


def _cleaned(text: str) -> str:
    kept: list[str] = []
    marks = 0
    for character in text:
        category = unicodedata.category(character)
        marks = marks + 1 if category[0] == "M" else 0
        if character in _BLANKS or category[0] == "Z":
            kept.append(" ")
        elif category in _UNSAFE or character in _FILLERS:
            kept.append("?")
        elif marks <= _MARKS and not _selects(character):
            kept.append(character)
    return "".join(kept)


def _selects(character: str) -> bool:
    """Return whether *character* is a variation selector, or U+034F, which is treated like one."""
    return "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef" or character == "\u034f"


_remembered = lru_cache(maxsize=4096)(_cleaned)
