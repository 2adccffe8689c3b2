"""Parses the values of options. Each parser is an argparse ``type``, which raises ``ArgumentTypeError``."""

import math
from argparse import ArgumentTypeError
from collections.abc import Callable
from pathlib import Path

from tfmemtop.filenames import check
from tfmemtop.words import option_values as words
from tfmemtop.words.ranks import unknown_field


def gpus(text: str) -> tuple[int, ...]:
    """Return ``0,2`` as NVML indices. ``none`` and an empty text mean no GPU at all."""
    if text.strip().lower() in ("", "none"):
        return ()
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise ArgumentTypeError(words.no_gpu_list(text))
    found = tuple(map(int, parts))
    if len(set(found)) < len(found):
        raise ArgumentTypeError(words.gpu_twice(text))
    return found


def seconds(least: float, most: float) -> Callable[[str], float]:
    """Return the parser of a time from *least* to *most* seconds."""

    def read(text: str) -> float:
        try:
            found = float(text)
        except ValueError:
            found = math.nan
        if not least <= found <= most:
            raise ArgumentTypeError(words.no_seconds(text, least, most))
        return found

    return read


def count(most: int) -> Callable[[str], int]:
    """Return the parser of a whole number from 1 to *most*."""

    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) < 12 and 1 <= int(text) <= most):
            raise ArgumentTypeError(words.no_count(text, most))
        return int(text)

    return read


def file(text: str) -> Path:
    """Return *text* as the name of a file to write. It must not be empty."""
    if not text:
        raise ArgumentTypeError(words.NO_FILE_NAME)
    return Path(text)


def address(text: str) -> tuple[str, int]:
    """Return ``9400``, ``0.0.0.0:9400`` or ``[::1]:9400`` as an address and a port. The default is ``127.0.0.1``."""
    host, colon, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port[:6]) <= 65_535):
        raise ArgumentTypeError(words.no_port(text))
    if colon and not host:
        raise ArgumentTypeError(words.no_address(text, port))
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ArgumentTypeError(words.no_brackets(text))
    return host or "127.0.0.1", int(port)


def prom_file(text: str) -> Path:
    """Return *text* as the name of a file for node_exporter, which reads only names that end in ``.prom``."""
    if not text.endswith(".prom"):
        raise ArgumentTypeError(words.no_prom_file(text))
    return file_of_a_rank(text)


def file_of_a_rank(text: str) -> Path:
    """Return *text* as the name of a file to write, with fields such as ``%r``; see :mod:`tfmemtop.filenames`."""
    if unknown := check(text):
        raise ArgumentTypeError(unknown_field(unknown))
    return file(text)
