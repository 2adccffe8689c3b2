"""The result of a bench, and the table that is made of such results."""

import math
import platform
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import psutil

T = TypeVar("T")


@dataclass(frozen=True)
class Row:
    """One line of the table. ``within`` is None where there is no bound."""

    what: str
    at_most: str
    measured: str
    how: str
    within: bool | None = None


def bounded(what: str, measured: float, most: float, unit: str, digits: int, how: str) -> Row:
    """Return the line of one figure, which is to be at most *most*."""
    return Row(what, f"{most:g} {unit}", f"{measured:.{digits}f} {unit}", how, measured <= most)


def table(rows: Iterable[Row]) -> str:
    """Return a markdown table. A value that is over its bound is bold."""
    lines = ["| what | at most | measured | how |", "| --- | --- | --- | --- |"]
    for row in rows:
        measured = f"**{row.measured}**" if row.within is False else row.measured
        lines.append(f"| {row.what} | {row.at_most} | {measured} | {row.how} |")
    return "\n".join(lines)


def spread(values: Sequence[float], digits: int) -> str:
    """``1.002 (0.998 to 1.011)``: the median, and the lowest and the highest of *values*."""
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def likely(values: Sequence[float], digits: int) -> str:
    """``1.002 (1.000 to 1.004)``: the median, and its 95 % confidence interval; with few *values* their whole range."""
    ordered, count = sorted(values), len(values)
    outside = max(0, math.floor(count / 2 - 0.98 * math.sqrt(count)) - 1) if count > 5 else 0
    return (
        f"{statistics.median(ordered):.{digits}f} ({ordered[outside]:.{digits}f} to {ordered[-1 - outside]:.{digits}f})"
    )


def in_turns(count: int, ours: Callable[[], T], theirs: Callable[[], T]) -> list[tuple[T, T]]:
    """Call both *count* times in turns, each first in every second turn. Return what each pair of calls returned."""
    pairs = []
    for number in range(count):
        if number % 2:
            first = ours()
            pairs.append((first, theirs()))
        else:
            first = theirs()
            pairs.append((ours(), first))
    return pairs


def has_gpu() -> bool:
    """Whether the driver offers a GPU."""
    return any(Path("/dev").glob("nvidia[0-9]*"))


def machine() -> str:
    """Return a description of the machine, without its name."""
    cores = len(psutil.Process().cpu_affinity())
    gpu = f", {_gpu_name()}" if has_gpu() else ", no GPU"
    load = f"{psutil.getloadavg()[0]:.1f}"
    return f"{cores} cores, CPython {platform.python_version()}{gpu}; load average {load} at the start"


def _gpu_name() -> str:
    for information in Path("/proc/driver/nvidia/gpus").glob("*/information"):
        for line in information.read_text().splitlines():
            name, _, value = line.partition(":")
            if name == "Model":
                return value.strip()
    return "a GPU"
