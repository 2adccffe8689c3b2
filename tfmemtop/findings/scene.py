"""What the rules for who keeps memory look at. Pure."""

import msgspec

from tfmemtop.events import ScriptError, Waiting
from tfmemtop.findings.names import quoted, spot
from tfmemtop.state.inventory import Inventory
from tfmemtop.state.model import Hooked
from tfmemtop.units import MIB, format_bytes, spoken

_MUCH, MOST = 0.25, 0.5
"""Shares of the memory in use. What holds less than the first does not matter, what holds the second does."""

_LEAST = 8 * MIB
LONG_AGO_S = 2.0
"""Seconds. Older figures may be of another moment: the memory in use changes thousands of times a second."""

_CODE = 28  # characters

FIT = ".fit("
"""Keras opens a tape for each step in it."""

GRADIENT = ".gradient("
"""The call of a tape that computes gradients. Meanwhile it keeps what it has recorded, and those of each operation."""

MANY = 8
"""The least number of tensors that counts as a collection that grows."""


class Need(msgspec.Struct, frozen=True):
    """What was needed at a moment, in bytes. ``asked`` is the request for which there was no room, 0 without one.

    ``whole`` is the limit, or the card's size; ``None`` where neither is known. ``rose`` is by how much the memory in
    use rose over the time before, or over the later half of a run that has not failed. ``steady`` if it rose little by
    little, as no model does that is made.
    """

    asked: int
    whole: int | None
    failed: bool
    rose: int
    steady: bool = False


class Scene(msgspec.Struct, frozen=True):
    """All that a rule looks at: the ``stock`` of a pool at a moment, what was needed, and the process.

    ``code`` is the script's line that failed to get memory, empty where it is not known, or where nothing failed.
    ``seen_s`` is how many seconds before the newest reading the stock was seen, where that is not the same moment.
    """

    stock: Inventory
    need: Need
    hooked: Hooked
    code: str = ""
    seen_s: float = 0.0

    def matters(self, size: int) -> bool:
        """Return whether *size* bytes that are kept explain that memory ran out, or that it rises."""
        in_use = self.stock.in_use
        if size < max(_LEAST, _MUCH * in_use) or size > in_use * 1.02:
            return False
        if not self.need.failed:
            return self.need.rose >= size / 4
        if self.need.whole is None or not self.need.asked:
            return size >= MOST * in_use
        return in_use - size + self.need.asked <= self.need.whole

    @property
    def room(self) -> int:
        """Characters before the text of a cause that names a line itself: that memory ran out, or that it rises."""
        return len("Out of memory: " if self.need.failed else "Memory keeps rising: ")

    @property
    def room_at(self) -> int:
        """Characters before the text of a cause: that memory ran out, and at which line, or that it rises."""
        at = self.hooked.waiting
        return self.room + (len(f" at {spot(at.file, at.line)}") if at and at.file and self.need.failed else 0)

    @property
    def running(self) -> str:
        """The script's call that waited for room, with a space before it: ``as `list(data)` runs``; else empty."""
        call = self.code.partition(" = ")[2] or self.code
        return f" as {quoted(call if len(call) <= _CODE else f'{call[:_CODE]}…')} runs" if call else ""

    def grew(self, size: int) -> bool:
        """Return whether most of the *size* bytes that are kept came in the time in which memory in use rose.

        All else that is in use explains no more of the rise than its own size.
        """
        return self.need.rose - (self.stock.in_use - size) >= size / 2

    @property
    def stopped(self) -> tuple[Waiting | ScriptError | None, ...]:
        """Where the script waited for room, and where it ended with an error."""
        return self.hooked.waiting, self.hooked.error

    @property
    def tapes(self) -> int:
        """The gradient tapes that were open, without Keras's own, which lasts for a step of ``fit``."""
        look = self.stock.look
        tapes = look.tapes or 0 if look else 0
        in_fit = any(one is not None and FIT in one.code for one in self.stopped)
        return 0 if in_fit and tapes == 1 else tapes

    def recorded(self, size: int) -> str:
        """Return :meth:`sized` of allocations that were recorded: ``at least`` so many, where not all were."""
        return self.sized(size) if self.stock.all_recorded else f"at least {self.sized(size)}"

    def sized(self, size: int, about: str = "") -> str:
        """Return *size* bytes, or *about* so many, as a part of what is in use: ``~0.2 GiB of the 0.9 GiB in use``."""
        part, whole = format_bytes(size), format_bytes(self.stock.in_use)
        held = f"{'nearly ' if about else ''}all {whole}" if part == whole else f"{about}{part} of the {whole}"
        if self.seen_s < LONG_AGO_S:
            return f"{held} in use"
        return f"{held} in use {spoken(self.seen_s)} earlier"
