"""Commands as lines that can be pasted into a shell. Pure."""

import shlex
from collections.abc import Iterable

from tfmemtop.words.safe import safe

INDENT = "    "


def pasted(words: Iterable[str], width: int) -> list[str]:
    """The command of *words*, in lines of at most *width* characters where its words allow it.

    Lines end with a backslash between two words. A line break within a word stays one: what follows it begins at the
    edge, as a blank there would be part of the word.
    """
    lines = [""]
    for word in map(quoted, words):
        first, *rest = word.split("\n")
        if lines[-1].strip() and len(lines[-1]) + len(first) + len(" " + " \\") > width:
            lines[-1] += " \\"
            lines.append(INDENT)
        lines[-1] += (" " if lines[-1].strip() else "") + first
        lines += rest
    return lines


def quoted(word: str) -> str:
    """*word* for a POSIX shell; with characters that a terminal must not get in bash's ``$'…'``."""
    if all(safe(line) == line for line in word.split("\n")):
        return shlex.quote(word)
    return "$'" + "".join(map(_escaped, word)) + "'"


def _escaped(character: str) -> str:
    if character in "\\'":
        return "\\" + character
    if character.isascii() and character.isprintable():
        return character
    if character == "\n":
        return "\\n"
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))
