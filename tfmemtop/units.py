"""Parses and formats bytes, durations and columns as people type and read them.

All units are powers of 1024: ``1.0 GiB`` is 1 073 741 824 bytes.
"""

import re
from collections.abc import Container, Sequence

MIB = 2**20
GIB = 2**30

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_SIZE = re.compile(r"\s*(\d{1,18}(?:\.\d{1,18})?)\s*(?:([kmgtp])(?:i?b)?|b)?\s*", re.IGNORECASE)
_PERCENT = re.compile(r"\s*(\d{1,18}(?:\.\d{1,18})?)\s*%\s*")


UNKNOWN = "—"
"""The text that is shown for a value that is not known."""


def format_bytes(count: int | None) -> str:
    """Return ``1536`` as ``1.5 KiB`` and ``None`` as ``—``."""
    return UNKNOWN if count is None else " ".join(_scaled(count))


def format_short(count: int | None) -> str:
    """Return ``1536`` as ``1.5K``, at most seven cells wide, for tables, and ``None`` as ``—``."""
    if count is None:
        return UNKNOWN
    number, unit = _scaled(count)
    # From 1000 on the decimal would be the seventh cell.
    return (number if len(number) < 6 else f"{float(number):.0f}") + unit[0]


def _scaled(count: int) -> tuple[str, str]:
    size, power = float(count), 0
    # 1023.95 would be printed as 1024.0, so it takes the next unit.
    while abs(size) >= 1023.95 and power < len(_UNITS) - 1:
        size, power = size / 1024, power + 1
    return (str(count) if power == 0 else f"{size:.1f}"), _UNITS[power]


def shown_difference(before: int, after: int) -> str:
    """Return the difference of two sizes in bytes as text, in the unit of the larger size.

    It is computed from the rounded figures, so that it agrees with the sizes as they are shown: ``0.7 GiB`` for
    ``1.0 GiB`` and ``300.0 MiB``. It is empty if both sizes are shown alike.
    """
    _, unit = _scaled(max(before, after))
    size = 1 << 10 * _UNITS.index(unit)
    places = 1 if size > 1 else 0
    difference = abs(round(after / size, places) - round(before / size, places))
    text = f"{difference:.{places}f}"
    return f"{text} {unit}" if float(text) else ""


def parse_size(text: str, whole: int | None = None) -> int:
    """Return the bytes that ``4G``, ``3500M``, ``1.5 GiB`` or ``4096`` means. ``50%`` is a share of *whole* bytes.

    Raises:
        ValueError: *text* is not a size, is zero, or is a percentage and *whole* is unknown.
    """
    if match := _PERCENT.fullmatch(text):
        share = float(match[1])
        if not 0 < share <= 100:
            raise ValueError(f"{text!r}: a percentage must be above 0 and at most 100")
        if whole is None:
            raise ValueError(f"{text!r}: the size of the whole is not known here; give a size such as 4G")
        return _above_0(text, int(whole * share / 100))
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a size; give one such as 4G, 3500M or 50%")
    power = " kmgtp".index((match[2] or " ").lower())
    return _above_0(text, int(float(match[1]) * 1024**power))


def _above_0(text: str, size: int) -> int:
    if size <= 0:
        raise ValueError(f"{text!r}: a size must be above 0")
    return size


def format_duration(seconds: float) -> str:
    """Return ``3725`` seconds as ``01:02:05``, and a day or more as ``2d 03:04``."""
    whole = max(0, int(seconds))
    days, rest = divmod(whole, 86_400)
    hours, minutes = rest // 3600, rest // 60 % 60
    return f"{days}d {hours:02}:{minutes:02}" if days else f"{hours:02}:{minutes:02}:{rest % 60:02}"


def duration(microseconds: int) -> str:
    """Return a duration as text: ``135 µs``, ``3.0 ms``, ``1.2 s``."""
    if microseconds < 1000:
        return f"{microseconds} µs"
    return f"{microseconds / 1e3:.1f} ms" if microseconds < 1_000_000 else f"{microseconds / 1e6:.1f} s"


def format_count(count: int) -> str:
    """Return ``10240`` as ``10,240``."""
    return f"{count:,}"


def format_rate(rate: float) -> str:
    """Return a rate per second with about three digits: ``1234``, ``12.4``, ``0.31``."""
    return f"{rate:.0f}" if rate >= 99.95 else f"{rate:.1f}" if rate >= 0.995 else f"{rate:.2f}"


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun: ``1 reading``, ``2 readings``, ``10,240 readings``."""
    return f"{format_count(number)} {one if number == 1 else many or one + 's'}"


def rough(number: float) -> str:
    """Return an estimate in two digits: ``~3,500``."""
    whole = round(number)
    digits = max(0, len(str(whole)) - 2)
    return f"~{format_count(round(whole, -digits))}"


def spoken(seconds: float) -> str:
    """Return a length of time: ``17 s``, ``1 min 20 s``, ``2 h 5 min``; from a day on ``2d 03:04``."""
    whole = max(0, int(seconds))
    if whole >= 86_400:
        return format_duration(seconds)
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    parts = ((hours, "h"), (minutes, "min")) if hours else ((minutes, "min"), (rest, "s"))
    return " ".join(f"{count} {unit}" for count, unit in parts if count) or "0 s"


def rough_time(seconds: float) -> str:
    """Return an estimate in the one unit that fits: ``~40 s``, ``~16 min``, ``~5 h``, ``~3 days``."""
    for unit, length in (("days", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"~{seconds / length:.0f} {unit}"
    return f"~{seconds:.0f} s"


def aligned(rows: Sequence[Sequence[str]], left: Container[int] = ()) -> list[str]:
    """Return *rows* as lines with columns. Those at the places *left* are aligned to the left, others to the right.

    Columns that are empty are left out.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if place in left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
            if width
        ).rstrip()
        for row in rows
    ]


def sentence(text: str) -> str:
    """Return *text* with a capital letter at its beginning."""
    return text[:1].upper() + text[1:]
