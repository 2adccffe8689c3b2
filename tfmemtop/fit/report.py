"""What is said of a search: a line a try, and at the end what to set. Pure."""

import shlex
from collections.abc import Sequence

from tfmemtop.fit.search import Search, Tried
from tfmemtop.settings import MIB
from tfmemtop.units import UNKNOWN, format_bytes

NOTEWORTHY = 0.02
"""Differences in speed below this share are called none: a run hardly ever repeats that closely."""


def limit_words(limit: int | None) -> str:
    """How a try is called."""
    return "no limit" if limit is None else f"limit {format_bytes(limit)}"


def result(tried: Tried) -> str:
    """How a try went, for the line that has begun with its limit."""
    text = f"{tried.how} ({tried.duration_s:.0f} s)"
    if tried.peak_in_use is not None:
        text += f"; peak in use {format_bytes(tried.peak_in_use)}, pool {format_bytes(tried.pool)}"
    return text + (f"; {speed_words(tried)}" if tried.speed is not None else "")


def speed_words(tried: Tried) -> str:
    """``12.3 steps/s``; a dash where it is not known."""
    if tried.speed is None:
        return UNKNOWN
    return f"{tried.speed:.0f} {tried.speed_unit}" if tried.speed >= 100 else f"{tried.speed:.3g} {tried.speed_unit}"


def from_the_largest(tried: Sequence[Tried]) -> list[Tried]:
    """*tried* in the order of :func:`table`."""
    return sorted(tried, key=lambda one: -(one.limit or 1 << 62))


def table(tried: Sequence[Tried], *, pools: bool = True) -> list[str]:
    """A heading, and all tries from the largest limit down, with what each costs in speed against the first.

    *pools*: with how large the pool became.
    """
    first = tried[0]
    lines = [("LIMIT", "PEAK IN USE", "POOL", "SPEED", "", "RESULT")]
    lines += [
        (
            "none" if one.limit is None else format_bytes(one.limit),
            format_bytes(one.peak_in_use),
            format_bytes(one.pool),
            speed_words(one),
            "" if one is first else _against(one, first),
            one.how,
        )
        for one in from_the_largest(tried)
    ]
    widths = [max(len(line[column]) for line in lines) for column in range(5)]
    if not pools:
        widths[2] = 0
    return [
        "  ".join(
            [
                *(cell.rjust(width) for cell, width in zip(line, widths, strict=False) if width),
                line[5],
            ]
        )
        for line in lines
    ]


def _against(tried: Tried, first: Tried) -> str:
    if tried.speed is None or first.speed is None or tried.speed_unit != first.speed_unit:
        return ""
    change = tried.speed / first.speed - 1
    return "as fast" if abs(change) < NOTEWORTHY else f"{change:+.0%}"


def finding(search: Search) -> list[str]:
    """What was found, or why nothing was; and, where it shows, why limit and peak are not the same."""
    first, limit, below = search.tried[0], search.limit, search.failed_below
    if limit is None:
        return [_nothing_found(search)]
    lines = [f"The smallest limit that worked: {format_bytes(limit)}."]
    lines[0] += f" {format_bytes(below)} did not." if below is not None else " Nothing smaller failed."
    if not search.settled:
        lines[0] += " More tries would tell it more closely."
    peak = first.peak_in_use or 0
    if limit > peak + MIB and below is not None and below >= peak:
        lines.append(
            f"It is {format_bytes(limit - peak)} above the first try's peak in use: a growing pool takes memory region "
            "by region, regions never merge, and a tensor needs one free piece within a region."
        )
    elif limit < peak:
        lines.append(
            f"It is {format_bytes(peak - limit)} below the first try's peak in use: with room to spare the allocator "
            "hands out larger pieces than were asked for."
        )
    return lines


def conclusion(search: Search, stopped: str, hint: str) -> list[str]:
    """:func:`finding`, with why the search was *stopped* before its end and what kept the hook out, if so."""
    said = finding(search) if search.tried else ["Nothing was found: no try has come to its end."]
    if stopped:
        said.append(f"The search has not come to its end: {stopped}.")
    if hint:
        said.append(f"The hook could not get into the script: {hint}.")
    return said


def _nothing_found(search: Search) -> str:
    first = search.tried[0]
    if not first.passed:
        if first.limit is not None:
            return f"Nothing was found: the largest limit to try, {format_bytes(first.limit)}, was not enough."
        return f"Nothing was found: the script does not pass without a limit either ({first.how})."
    if first.peak_in_use is None:
        return "Nothing was found: no allocator of TensorFlow's was seen in the script that a limit could act on."
    if search.has_next():
        return "Nothing was found: the search was ended before any limit had worked."
    tries = f"{len(search.tried)} {'try' if len(search.tried) == 1 else 'tries'}"
    return f"Nothing was found in {tries}: no limit has worked yet; more tries may help."


def advice(search: Search, *, on_gpu: bool, option: str, growth: str | None, command: Sequence[str]) -> list[str]:
    """The setting to use, as *option* of tfmemtop and as lines of code; empty if none was found."""
    limit = search.advice
    if limit is None:
        return []
    return [
        f"With a margin: {format_bytes(limit)}.",
        "",
        f"  {command_line(limit, option=option, growth=growth, command=command)}",
        "",
        *where(on_gpu=on_gpu),
        "",
        *(f"  {line}" for line in code(limit, on_gpu=on_gpu)),
    ]


def command_line(limit: int, *, option: str, growth: str | None, command: Sequence[str]) -> str:
    """How tfmemtop starts *command* with that *limit*, in bytes."""
    words = ["tfmemtop", *(["--growth", growth] if growth else []), option, f"{limit // MIB}M", "--", *command]
    return shlex.join(words)


def where(*, on_gpu: bool) -> list[str]:
    """Where in the script :func:`code` goes."""
    if not on_gpu:
        return ["or, in the script, before TensorFlow is imported:"]
    return [
        "or, in the script, before anything else that touches TensorFlow's devices; it then takes all of that at once,",
        "since TensorFlow's own API has no limit together with growth:",
    ]


def code(limit: int, *, on_gpu: bool) -> list[str]:
    """The lines that set *limit* bytes in the script itself."""
    mib = limit // MIB
    if not on_gpu:
        return [
            "import os",
            'os.environ["TF_CPU_ALLOCATOR_USE_BFC"] = "true"',
            f'os.environ["TF_CPU_BFC_MEM_LIMIT_IN_MB"] = "{mib}"',
        ]
    return [
        "import tensorflow as tf",
        'for gpu in tf.config.list_physical_devices("GPU"):',
        f"    limit = tf.config.LogicalDeviceConfiguration(memory_limit={mib})  # MiB",
        "    tf.config.set_logical_device_configuration(gpu, [limit])",
    ]
