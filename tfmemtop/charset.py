"""Decides by the locale which characters the user's terminal can show, and replaces the others.

The user's own variables decide. The encoding of Python's streams does not: it is UTF-8 in the C locale, too. If no
variable is set, as in most containers, UTF-8 is used, because today's terminals accept it. With C, POSIX or another
character set, ASCII is used.
"""

import codecs
import locale
import re
import sys
import unicodedata
from collections.abc import Mapping
from typing import IO

_VARIABLES = ("LC_ALL", "LC_CTYPE", "LANG")  # the first that is not empty counts
_HANDLER = "tfmemtop-ascii"

_PLAIN = {
    "—": "-", "–": "-", "−": "-", "·": "-", "•": "*", "°": " ", "×": "x", "µ": "u", "μ": "u", "≥": ">", "≤": "<",
    "→": ">", "←": "<", "↑": "^", "↓": "v", "…": "~", "“": '"', "”": '"', "„": '"', "‘": "'", "’": "'",
    "─": "-", "━": "=", "╌": "-", "│": "|", "┃": "|", "┊": ":", "▏": "|", "└": "+", "├": "|", "┤": "+", "╵": "^",
    "┌": "+", "┐": "+", "┘": "+", "▁": "_", "▐": "[", "▌": "]", "▶": ">", "▮": "|",
    "█": "#", "▓": "=", "▒": "+", "░": "/", "▞": "J", "▚": "P", "▤": "C", "▥": "R",  # of JAX, PyTorch, CuPy, RMM
    "●": "*", "○": "o", "■": "#", "▲": "^", "▼": "v", "▾": "v", "▸": ">",
}  # fmt: skip
"""Replacements that are as wide as the original: one cell."""

_LONGER = {"…": "...", "→": "->", "←": "<-", "≥": ">=", "≤": "<=", "°": ""}
"""Replacements that are easier to read, for text whose width may change."""


def locale_name(environment: Mapping[str, str]) -> str:
    """Return the name of the locale that *environment* sets for characters; empty if none is set."""
    return next((environment[name] for name in _VARIABLES if environment.get(name)), "")


def takes_utf8(environment: Mapping[str, str]) -> bool:
    """Return whether UTF-8 may be written to the terminal of a user whose variables are *environment*."""
    name = locale_name(environment)
    plain = name.partition("@")[0].lower()
    if not plain or "utf8" in plain.replace("-", ""):
        return True
    if plain in ("c", "posix") or "." in plain:
        return False
    return _own_charset(name).replace("-", "").lower() == "utf8"


def _own_charset(name: str) -> str:
    """Return the C library's character set for the locale *name*; empty if the C library does not have the locale."""
    before = locale.setlocale(locale.LC_CTYPE)
    try:
        locale.setlocale(locale.LC_CTYPE, name)
        return locale.nl_langinfo(locale.CODESET)
    except locale.Error:
        return ""
    finally:
        locale.setlocale(locale.LC_CTYPE, before)


def to_ascii(text: str) -> str:
    """Return *text* in ASCII. It takes as many cells of a terminal as before."""
    return text if text.isascii() else "".join(map(_cell, text))


def _cell(character: str) -> str:
    if character.isascii():
        return character
    if character in _PLAIN:
        return _PLAIN[character]
    if "\u2800" <= character <= "\u28ff":
        return ":" if character != "\u2800" else " "  # braille characters, of which graphs are made
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return ""
    wide = unicodedata.east_asian_width(character) in ("W", "F")
    base = unicodedata.normalize("NFKD", character)[0]
    return "??" if wide else base if base.isascii() and base.isprintable() else "?"


_BEYOND = re.compile("[^\0-\x7e]")


def json_ascii(text: str) -> str:
    """Return the JSON *text* with DEL and every character beyond ASCII escaped, for any terminal and pipe.

    It decodes to the same values.
    """
    return _BEYOND.sub(lambda found: _escaped(found[0]), text)


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def fit_streams(environment: Mapping[str, str]) -> None:
    """Make standard output and error replace the characters that they cannot encode, instead of raising an exception.

    If the terminal accepts UTF-8, only characters that UTF-8 cannot encode are replaced. Otherwise all characters
    beyond ASCII are replaced.
    """
    codecs.register_error(_HANDLER, _replace)
    encoding = "utf-8" if takes_utf8(environment) else "ascii"
    for stream in (sys.stdout, sys.stderr):
        _refit(stream, encoding)


def _refit(stream: IO[str] | None, encoding: str) -> None:
    reconfigure = getattr(stream, "reconfigure", None)  # the stream may have been replaced
    if reconfigure is not None:
        reconfigure(encoding=encoding, errors=_HANDLER)


def _replace(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    failed = error.object[error.start : error.end]
    return "".join(_LONGER.get(character, _cell(character)) for character in failed), error.end
