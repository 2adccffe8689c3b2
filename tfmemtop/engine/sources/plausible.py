"""Checks which of the driver's figures are possible. The others are left out, and the reading reports that."""

from typing import Any

from tfmemtop.events import Lacking, WhyLacking

LARGEST_MEMORY = 1 << 50  # bytes; a PiB on one card
LARGEST_POWER_MW = 100_000_000
TEMPERATURES_C = (-100, 300)
LARGEST_PID = 1 << 22  # the kernel's own highest for pid_max
MOST_CARDS = 1024
MOST_PROCESSES = 65_536

NOT_AVAILABLE = (1 << 64) - 1
"""The value by which NVML reports that it does not know a process's memory (NVML_VALUE_NOT_AVAILABLE)."""

_SHOWN = 24  # characters of an impossible figure
_TOLD = 64  # impossible figures of one reading


class Sieve:
    """Separates the possible figures of one reading from the impossible ones, and keeps the latter by name."""

    def __init__(self) -> None:
        self.held_back: dict[str, str] = {}

    def figure(self, name: str, value: Any, most: int, least: int = 0) -> int | None:
        """Return *value* if it is a whole number from *least* to *most*, else ``None``."""
        if value is None:
            return None
        if type(value) is int and least <= value <= most:
            return value
        self.held_back.setdefault(name, str(value)[:_SHOWN])
        return None

    def lacking(self) -> list[Lacking]:
        """Return the names of the impossible figures, with their values."""
        told = [f"{name} {value}" for name, value in self.held_back.items()]
        return [Lacking(WhyLacking.IMPOSSIBLE, told[:_TOLD])] if told else []
