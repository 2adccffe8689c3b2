"""The course of a window: the allocations that are in use after each of its events."""

from functools import lru_cache
from itertools import accumulate

from tfmemtop.events import Holders, Holding
from tfmemtop.events.allocations import FOREVER, WindowAllocations, unpack
from tfmemtop.events.damage import Damaged
from tfmemtop.state.operation_names import Phase, named

REMEMBERED = 8
"""The number of windows whose results are cached: those that were used last."""


class WindowCourse:
    """A window's allocations, unpacked.

    ``names``, ``kinds``, ``holdings``, ``addresses``, ``begins`` and ``ends`` are those of :class:`WindowAllocations`.
    ``times`` are the times of the events, in µs since the window began. ``events`` is the number of events. ``kept`` is
    true for allocations that outlive the beginning of the next backward pass.
    """

    def __init__(self, window: Holders) -> None:
        try:
            found = unpack(window.packed, WindowAllocations)
        except Damaged:
            found = WindowAllocations()
        if window.peak_at >= len(found.times):
            found = WindowAllocations()  # the recording was changed
        self.names, self.kinds, self.holdings = found.names, found.kinds, found.holdings
        self.addresses, self.begins, self.ends = found.addresses, found.begins, found.ends
        self.times = list(accumulate(found.times))
        self.events = len(self.times)
        self.sizes = [self.kinds[holding].size for holding in self.holdings]
        self.nobodys = max(0, window.peak - self.held(window.peak_at))
        """Bytes of the peak that belong to no span."""
        older = (place for place in self.alive(window.peak_at) if not self.kinds[self.holdings[place]].window)
        self.nameless = self.nobodys + sum(self.sizes[place] for place in older)
        """Bytes of the peak whose allocation was not recorded, in this window or another."""
        self.kept = self._kept()

    def name(self, kind: Holding) -> str:
        """Return TensorFlow's name of the operation of *kind*; empty if it has none."""
        number = kind.operation
        return self.names[number] if number is not None and 0 <= number < len(self.names) else ""

    def alive(self, at: int) -> list[int]:
        """Return the indices of the spans that are in use after event *at*."""
        return [
            place
            for place, (begin, end) in enumerate(zip(self.begins, self.ends, strict=True))
            if begin <= at and (end > at or end == FOREVER)
        ]

    def held(self, at: int) -> int:
        """Return the bytes of all spans that are in use after event *at*."""
        return sum(
            size
            for size, begin, end in zip(self.sizes, self.begins, self.ends, strict=True)
            if begin <= at and (end > at or end == FOREVER)
        )

    def last_held(self, least: int, most: int, otherwise: int) -> int:
        """Return the last event after which spans of *least* to *most* bytes were in use.

        Without one, it is the last after which there were more, and *otherwise* without one of these.
        """
        enough = [(at, held) for at, held in enumerate(self.in_use()) if held >= least]
        return next((at for at, held in reversed(enough) if held <= most), enough[-1][0] if enough else otherwise)

    def in_use(self) -> list[int]:
        """Return the bytes of all spans that are in use after each event."""
        changes = [0] * (self.events + 1)  # the first is what was in use before
        for held, begin, end in zip(self.sizes, self.begins, self.ends, strict=True):
            changes[begin + 1] += held
            if end != FOREVER:
                changes[end + 1] -= held
        return list(accumulate(changes))[1:]

    def _kept(self) -> list[bool]:
        """Return, for each span, whether it outlives the beginning of the first backward pass after its own begin."""
        of_gradients = [named(self.name(kind)).phase is Phase.BACKWARD for kind in self.kinds]
        kept: list[bool] = []
        # The next event at which gradients are allocated: `later` counts the present event, `following` does not.
        later = following = None
        at = None
        for holding, begin, end in zip(
            reversed(self.holdings), reversed(self.begins), reversed(self.ends), strict=True
        ):
            if begin != at:
                at, following = begin, later
            kept.append(following is not None and (end == FOREVER or end > following))
            if of_gradients[holding]:
                later = begin
        kept.reverse()
        return kept


@lru_cache(REMEMBERED)
def unpacked(window: Holders) -> WindowCourse:
    """Return the window's course. It has no spans if the packed fields are damaged."""
    return WindowCourse(window)


def times_us(window: Holders) -> list[int]:
    """Return the time of each event, in µs since the window began; an empty list if the times are not known."""
    return unpacked(window).times
