"""Which of the driver's figures can be: the others are held back, and it is said that they are."""

from typing import Any

LARGEST_MEMORY = 1 << 50  # bytes; a PiB on one card
LARGEST_POWER_MW = 100_000_000
TEMPERATURES_C = (-100, 300)
LARGEST_PID = 1 << 22  # the kernel's own highest for pid_max
MOST_CARDS = 1024
MOST_PROCESSES = 65_536

NOT_AVAILABLE = (1 << 64) - 1
"""How NVML says of a process's memory that it does not know it (NVML_VALUE_NOT_AVAILABLE)."""

_SHOWN = 24  # characters of a figure that cannot be
_TOLD = 4


class Sieve:
    """Lets those figures of one reading through that can be, and keeps the names of the others."""

    def __init__(self) -> None:
        self.held_back: dict[str, str] = {}

    def figure(self, name: str, value: Any, most: int, least: int = 0) -> int | None:
        """*value* if it is a whole number from *least* to *most*."""
        if value is None:
            return None
        if type(value) is int and least <= value <= most:
            return value
        self.held_back.setdefault(name, str(value)[:_SHOWN])
        return None

    def words(self) -> str | None:
        """One clause on what was held back; ``None`` if nothing was."""
        if not self.held_back:
            return None
        told = ", ".join(f"{name} {value}" for name, value in list(self.held_back.items())[:_TOLD])
        more = len(self.held_back) - _TOLD
        told += f" and {more} more" if more > 0 else ""
        return f"not shown, since it cannot be: {told}"
