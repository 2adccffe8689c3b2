"""What the options' values mean. Each function is an argparse ``type``: it raises ``ArgumentTypeError``."""

import math
from argparse import ArgumentTypeError
from collections.abc import Callable
from pathlib import Path

from tfmemtop.filenames import check
from tfmemtop.words.ranks import unknown_field


def gpus(text: str) -> tuple[int, ...]:
    """``0,2`` as NVML indices; ``none`` and nothing as no GPU at all."""
    if text.strip().lower() in ("", "none"):
        return ()
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise ArgumentTypeError(f"{text!r} is not a list of GPUs such as 0,2; give numbers as nvidia-smi shows them")
    found = tuple(map(int, parts))
    if len(set(found)) < len(found):
        raise ArgumentTypeError(f"{text!r} names a GPU twice")
    return found


def seconds(least: float, most: float) -> Callable[[str], float]:
    """A time from *least* to *most* seconds."""

    def read(text: str) -> float:
        try:
            found = float(text)
        except ValueError:
            found = math.nan
        if not least <= found <= most:
            raise ArgumentTypeError(f"{text!r} is not a number of seconds from {least:g} to {most:g}")
        return found

    return read


def count(most: int) -> Callable[[str], int]:
    """A whole number from 1 to *most*."""

    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) < 12 and 1 <= int(text) <= most):
            raise ArgumentTypeError(f"{text!r} is not a whole number from 1 to {most}")
        return int(text)

    return read


def file(text: str) -> Path:
    """The name of a file to write."""
    if not text:
        raise ArgumentTypeError("the file's name is empty")
    return Path(text)


def file_of_a_rank(text: str) -> Path:
    """The name of a file to write, with fields such as ``%r``; see :mod:`tfmemtop.filenames`."""
    if unknown := check(text):
        raise ArgumentTypeError(unknown_field(unknown))
    return file(text)
