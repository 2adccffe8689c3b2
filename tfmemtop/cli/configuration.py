"""The user's file of options, ``~/.config/tfmemtop/config.toml``. The options on the command line override it."""

import argparse
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tfmemtop.cli import Refusal
from tfmemtop.home import home

_TYPED_ONLY = {"--record", "--once", "--json", "--loop", "--help", "--version"}
"""Options that the file cannot contain."""
_LARGEST = 64 * 1024  # bytes: a file of options is far smaller


def path() -> Path:
    """Return the path of the file, whether it exists or not."""
    given = os.environ.get("XDG_CONFIG_HOME") or ""
    folder = Path(given) if given.startswith("/") else home() / ".config"  # the XDG standard ignores relative paths
    return folder / "tfmemtop" / "config.toml"


def configured(parser: argparse.ArgumentParser) -> dict[str, Any]:
    """Return the values in the file by the names of their attributes, as *parser* parses them.

    Raises:
        Refusal: the file cannot be read, is too large, or is not TOML, or an entry is not valid.
    """
    entries = _read()
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
    except OSError as error:
        raise Refusal(f"{file}: {error.strerror}") from error
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
