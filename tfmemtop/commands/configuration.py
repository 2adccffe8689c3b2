"""The user's file of options, ``~/.config/tfmemtop/config.toml``. The options on the command line override it."""

import os
from collections.abc import Mapping
from pathlib import Path

from tfmemtop.commands.refusal import Refusal
from tfmemtop.home import home
from tfmemtop.words import command_line

_LARGEST = 64 * 1024  # bytes: a file of options is far smaller


def path() -> Path:
    """Return the path of the file, whether it exists or not."""
    given = os.environ.get("XDG_CONFIG_HOME") or ""
    folder = Path(given) if given.startswith("/") else home() / ".config"  # the XDG standard ignores relative paths
    return folder / "tfmemtop" / "config.toml"


def read() -> Mapping[str, object]:
    """Return the file's entries by name; empty if there is no file.

    Raises:
        Refusal: the file cannot be read, is too large, or is not TOML.
    """
    file = path()
    try:
        with file.open("rb") as opened:
            text = opened.read(_LARGEST + 1)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise Refusal(f"{file}: {error.strerror}") from error
    if len(text) > _LARGEST:
        raise Refusal(command_line.file_too_large(str(file), _LARGEST // 1024))
    from msgspec import DecodeError, toml  # imported only here, because most users have no such file

    try:
        return toml.decode(text.decode(), type=dict[str, object])
    except (UnicodeDecodeError, DecodeError) as error:
        raise Refusal(f"{file}: {error}") from error


def words(entries: Mapping[str, object], known: Mapping[str, bool]) -> list[str]:
    """Return *entries* as words of a command line.

    *known* has the options that the file may contain, each with whether it takes a value.

    Raises:
        Refusal: an entry is not one of these options, or its value is of the wrong kind.
    """
    found = []
    for name, value in entries.items():
        flag = f"--{name}"
        if flag not in known:
            raise Refusal(command_line.no_configured_option(str(path()), name))
        if known[flag] and isinstance(value, str | int | float) and not isinstance(value, bool):
            found.append(f"{flag}={value}")
        elif not known[flag] and isinstance(value, bool):
            found += [flag] * value
        else:
            raise Refusal(command_line.wrong_kind(str(path()), name, takes_value=known[flag]))
    return found
