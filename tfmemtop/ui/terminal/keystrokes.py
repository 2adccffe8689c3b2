"""Turns Textual's key events into what a terminal sends for them."""

from textual.keys import Keys

_PLAIN = {
    Keys.Enter: "\r",
    Keys.Tab: "\t",
    Keys.BackTab: "\x1b[Z",
    Keys.Backspace: "\x7f",
    Keys.Escape: "\x1b",
    Keys.ControlAt: "\x00",
    Keys.ControlBackslash: "\x1c",
    Keys.ControlSquareClose: "\x1d",
    Keys.ControlCircumflex: "\x1e",
    Keys.ControlUnderscore: "\x1f",
    "space": " ",
    "ctrl+space": "\x00",
    "ctrl+left_square_bracket": "\x1b",
    "ctrl+backspace": "\x08",
    "shift+enter": "\r",
}
# Keys whose sequence ends in a letter, with a modifier before it. Arrows, home and end have an application form.
_LETTERS = {"up": "A", "down": "B", "right": "C", "left": "D", "home": "H", "end": "F"}
_LETTERS |= {"f1": "P", "f2": "Q", "f3": "R", "f4": "S"}
_NUMBERS = {"insert": 2, "delete": 3, "pageup": 5, "pagedown": 6}
_NUMBERS |= {"f5": 15, "f6": 17, "f7": 18, "f8": 19, "f9": 20, "f10": 21, "f11": 23, "f12": 24}
_MODIFIERS = {"shift": 1, "alt": 2, "ctrl": 4}


def encode(key: str, character: str | None, application_cursor: bool = False) -> str | None:
    """Return what a terminal sends for *key*, which is Textual's name of it; ``None`` if it sends nothing.

    *character* is what the key prints, if anything. With *application_cursor*, arrows, home and end
    are sent in the form that programs request with the mode DECCKM.
    """
    if plain := _PLAIN.get(key):
        return plain
    *names, base = key.split("+") if key != "+" else [key]
    modifiers = set(names)
    if not modifiers <= _MODIFIERS.keys():
        return None  # super, hyper: keys for the desktop
    code = sum(_MODIFIERS[name] for name in modifiers)
    if letter := _LETTERS.get(base):
        if code:
            return f"\x1b[1;{code + 1}{letter}"
        return f"\x1bO{letter}" if application_cursor or base.startswith("f") else f"\x1b[{letter}"
    if number := _NUMBERS.get(base):
        return f"\x1b[{number};{code + 1}~" if code else f"\x1b[{number}~"
    alt = "\x1b" if "alt" in modifiers else ""
    if "ctrl" in modifiers:
        return alt + chr(ord(base) & 0x1F) if len(base) == 1 and base.isascii() and base.isalpha() else None
    if character is not None and character.isprintable():
        return alt + character
    if plain := _PLAIN.get(base):
        return alt + plain
    if alt and len(base) == 1:
        return alt + (base.upper() if "shift" in modifiers else base)
    return None


def encode_paste(text: str, bracketed: bool) -> str:
    """Return what a terminal sends for pasted *text*; *bracketed* if the program has requested marks around it."""
    text = text.replace("\r\n", "\r").replace("\n", "\r")
    # Pasted text must not contain the mark that ends it.
    return f"\x1b[200~{text.replace(chr(27), '')}\x1b[201~" if bracketed else text
