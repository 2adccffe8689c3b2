"""Text that is not ours, made harmless before it is drawn or printed. Pure.

Names, paths, messages, arguments, command lines and whatever else a script, a driver, a recording or another user
wrote pass through :func:`safe`. What it decides:

========================================================  ==========================================================
line breaks, tabs, line and paragraph separators, blanks  a blank: the text stays on its line
control characters, C0 and C1, with ESC and DEL           ``?``: none starts a sequence that steers the terminal
invisible format characters: bidi overrides, joiners,     ``?``: none turns the direction of writing, none hides
zero-width blanks, soft hyphens, tags, fillers            what stands between two others
lone surrogates, unassigned characters                    ``?``: they cannot be encoded, or nobody knows their width
variation selectors                                       left out: terminals disagree on what they make wide
more than eight marks on one character                    left out from the ninth on
========================================================  ==========================================================

Everything else stays as it is, private characters included, which fonts for terminals use. The result is safe again:
passing a text through twice changes nothing.
"""

import re
import unicodedata
from functools import lru_cache

_MARKS = 8  # on one character: no script needs as many
_CACHED = 1024  # characters; longer texts are rare, and would fill the memory
_BLANKS = frozenset("\t\n\v\f\r\x85\u2028\u2029")
_UNSAFE = frozenset(("Cc", "Cf", "Cs", "Cn"))
_FILLERS = frozenset("\u115f\u1160\u17b4\u17b5\u3164\uffa0")  # letters by name, but nothing is to be seen

# What is drawn all the time, in blocks without a single exception.
_PLAIN = re.compile(
    "[ -~\xa1-\xac\xae-\u02ff\u0400-\u0482\u2010-\u2027\u2030-\u205e\u2100-\u218b\u2190-\u2426\u2460-\u2b73"
    "\u3041-\u3096\u4e00-\u9ffc\uac00-\ud7a3]*"
).fullmatch


def safe(text: str) -> str:
    """*text* on one line, without characters that would steer the terminal or deceive the reader."""
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
    """Whether it is a variation selector."""
    return "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef" or character == "\u034f"


_remembered = lru_cache(maxsize=4096)(_cleaned)
