"""The text of numbers and lengths of time. Pure."""

from tfmemtop.units import format_count, format_duration


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


def sentence(text: str) -> str:
    """Return *text* with a capital letter at its beginning."""
    return text[:1].upper() + text[1:]
