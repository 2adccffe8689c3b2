"""Format commands as lines that can be pasted into a shell. Pure."""

import shlex
from collections.abc import Iterable

from tfmemtop.words.safe import safe

INDENT = "    "


def pasted(words: Iterable[str], width: int) -> list[str]:
    """Return the command of *words*, in lines of at most *width* characters where its words allow it.

    A line ends with a backslash if the next one begins with another word. A line break within a word is kept; the text
    after it is not indented, since a blank there would be part of the word.
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
    """Return *word* quoted for a POSIX shell. If it contains characters that are not safe, it is in bash's ``$'…'``."""
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
