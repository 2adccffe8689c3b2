"""The user's file of options, ``~/.config/tfmemtop/config.toml``. The options on the command line override it."""

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tfmemtop.cli import Refusal
from tfmemtop.cli.output import say
from tfmemtop.home import user_folder, writable_output_folder

_TYPED_ONLY = {"--record", "--once", "--json", "--loop", "--help", "--version"}
"""Options that the file cannot contain."""
_LARGEST = 64 * 1024  # bytes: a file of options is far smaller


def path() -> Path:
    """Return the path of the file, whether it exists or not."""
    return user_folder("XDG_CONFIG_HOME", ".config") / "tfmemtop" / "config.toml"


def configured(parser: argparse.ArgumentParser) -> dict[str, Any]:
    """Return the values in the file by the names of their attributes, as *parser* parses them.

    One line says so where the user's folders cannot be used, as where there is no home folder.

    Raises:
        Refusal: the file is too large, or is not TOML, or an entry is not valid.
    """
    entries: Mapping[str, object] = {}
    try:
        entries = _read()
        writable_output_folder()
    except OSError as error:
        left = "kept sessions" if entries else "settings and kept sessions"
        say(f"{error.filename}: {error.strerror}; {left} are left out")
    if not entries:
        return {}
    try:
        found = parser.parse_known_args(list(_words(entries, parser)))[0]
    except Refusal as refusal:
        raise Refusal(f"{path()}: {refusal}") from None
    return {name: value for name, value in vars(found).items() if name.replace("_", "-") in entries}


def _read() -> Mapping[str, object]:
    file = path()
    try:
        with file.open("rb") as opened:
            text = opened.read(_LARGEST + 1)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    if len(text) > _LARGEST:
        raise Refusal(f"{file}: the file is larger than {_LARGEST // 1024} KiB")
    from msgspec import DecodeError, toml  # imported only here, because most users have no such file

    try:
        return toml.decode(text.decode(), type=dict[str, object])
    except (UnicodeDecodeError, DecodeError) as error:
        raise Refusal(f"{file}: {error}") from error


def _words(entries: Mapping[str, object], parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield *entries* as words of a command line."""
    takes_value = {flag: action.nargs != 0 for action in parser._actions for flag in action.option_strings}
    for name, value in entries.items():
        flag = f"--{name}"
        if flag not in takes_value or flag in _TYPED_ONLY:
            raise Refusal(f"there is no option {name!r}; see tfmemtop help config")
        if takes_value[flag] and isinstance(value, str | int | float) and not isinstance(value, bool):
            yield f"{flag}={value}"
        elif takes_value[flag]:
            raise Refusal(f'{name} has to be a number, or text in quotes such as "4G"')
        elif not isinstance(value, bool):
            raise Refusal(f"{name} has to be true or false")
        elif value:
            yield flag
