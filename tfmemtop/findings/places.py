"""The names of devices and of lines of the script. Pure."""

import re
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from pathlib import PurePath
from typing import TypeVar

from tfmemtop.events.device_names import is_cpu
from tfmemtop.findings.callsite import Callsite

K = TypeVar("K", bound=Hashable)

_CELL = re.compile(r"<ipython-input-(?P<number>\d+)-[^>]*>:(?P<line>\d+)")
_UNKNOWN_CELL = re.compile(r".*/ipykernel_\d+/\d+\.py:(?P<line>\d+)")
"""The name that ipykernel gives to a cell's code for its debugger, as if the cell were a file."""

_A_RANGE = 3  # from so many GPUs on, they are shown as a range

BEFORE = "before the hook was there"
"""The text in place of a line that is not known, since it ran before the hook was there."""


@dataclass(frozen=True, slots=True)
class Place:
    """The device that a finding is about.

    ``gpu`` is the NVML index, ``None`` for the CPU pool and where it is not known. ``device`` is TensorFlow's logical
    device, ``None`` for a whole card. ``shared`` if other logical devices of the process lie on the same card.
    ``pid`` is given where several processes of the run have devices.
    """

    gpu: int | None
    device: str | None = None
    shared: bool = False
    pid: int | None = None

    @property
    def on_cpu(self) -> bool:
        return self.device is not None and is_cpu(self.device)


def place_name(place: Place) -> str:
    """Return the name of a device: ``GPU 0``, ``CPU pool``.

    Where a GPU has several logical devices, ``GPU:1 on GPU 0``; where several processes have devices,
    ``GPU 0, process 200``.
    """
    return _device(place) + (f", process {place.pid}" if place.pid is not None else "")


def _device(place: Place) -> str:
    if place.on_cpu:
        return "CPU pool"
    if place.gpu is None:
        return place.device or "a GPU"
    return f"{place.device} on GPU {place.gpu}" if place.shared else f"GPU {place.gpu}"


def gpus(numbers: Iterable[int]) -> str:
    """Return the GPUs as text: ``GPU 0 to 7``, ``GPU 0, 2, 5``."""
    ordered = sorted(numbers)
    if len(ordered) >= _A_RANGE and ordered[-1] - ordered[0] == len(ordered) - 1:
        return f"GPU {ordered[0]} to {ordered[-1]}"
    return f"GPU {', '.join(map(str, ordered))}"


def alike_gpus(told: Iterable[tuple[int, K]]) -> list[tuple[K, list[int]]]:
    """Group pairs of a GPU's number and a fact: return each fact once, with the numbers of its GPUs."""
    numbers: dict[K, list[int]] = {}
    for index, thing in told:
        numbers.setdefault(thing, []).append(index)
    return list(numbers.items())


def line_of(site: Callsite) -> str:
    """Return the name of a line: ``train.py:12``; in a notebook's cell ``In [7]:3``."""
    return spot(site.file, site.line) if site.file else "the script"


def spot(file: str, line: int, *, whole: bool = False) -> str:
    """Return the name of a line: ``train.py:12``, or with *whole* its whole path; in a notebook's cell ``In [7]:3``.

    Without a *file*, the line is not known, since it ran before the hook was there.
    """
    if not file:
        return BEFORE
    return named_spot(f"{file}:{line}", whole=whole)


def named_spot(text: str, *, whole: bool = False) -> str:
    """Return the same as :func:`spot`, for a file and a line that are one text."""
    if cell := _CELL.fullmatch(text):
        return f"In [{cell['number']}]:{cell['line']}"
    if cell := _UNKNOWN_CELL.fullmatch(text):
        return f"In [?]:{cell['line']}"
    return text if whole else PurePath(text).name


def line_with_code(site: Callsite) -> str:
    """Return the name of a line with its code, where that is known: ``train.py:12 (x = tf.ones(3))``."""
    return line_of(site) + (f" ({site.code})" if site.code else "")
