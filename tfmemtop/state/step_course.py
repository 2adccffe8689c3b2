"""The course of a window: which allocations live at which of its events, and what is in use then."""

from collections.abc import Callable
from itertools import accumulate
from typing import TypeVar

import msgspec

from tfmemtop.events import Holders, Holding
from tfmemtop.events.courses import FOREVER, numbers, unpack_columns, unpack_holdings, unpack_names
from tfmemtop.state.operation_names import Phase, named

T = TypeVar("T")
_REMEMBERED = 8
"""Windows whose course is kept."""


def once_per_window(view: Callable[[Holders], T]) -> Callable[[Holders], T]:
    """*view*, keeping its answers for the windows that were asked for last."""
    last: list[tuple[Holders, T]] = []

    def remembered(window: Holders) -> T:
        for place, (known, answer) in enumerate(last):
            if known is window:
                last.insert(0, last.pop(place))
                return answer
        answer = view(window)
        last.insert(0, (window, answer))
        del last[_REMEMBERED:]
        return answer

    remembered.__doc__ = view.__doc__
    return remembered


class Course:
    """A window's allocations, unpacked.

    ``holdings``, ``addresses``, ``begins`` and ``ends`` have an entry for each; see :class:`events.courses.Span`.
    ``kinds`` are what ``holdings`` has the places of, and ``names`` those of their operations.
    ``events`` is the number of events. ``kept`` is true of what outlives the beginning of the next backward pass.
    """

    def __init__(self, window: Holders) -> None:
        try:
            self.names = unpack_names(window.names)
            self.kinds = unpack_holdings(window.holdings)
            self.holdings, self.addresses, self.begins, self.ends = unpack_columns(window.spans, self.kinds)
        except (ValueError, msgspec.MsgspecError):
            self.names, self.kinds = [], []
            self.holdings, self.addresses, self.begins, self.ends = [], [], [], []
        self.events = max(1 + max(self.begins, default=-1), 1 + max(self.ends, default=-1), window.peak_at + 1)
        self.sizes = [self.kinds[holding].size for holding in self.holdings]
        self.nobodys = max(0, window.peak - self.held(window.peak_at))
        """Bytes of the peak that are in no span."""
        self.kept = self._kept()

    def name(self, kind: Holding) -> str:
        """TensorFlow's name of its operation; empty if it has none."""
        number = kind.operation
        return self.names[number] if number is not None and 0 <= number < len(self.names) else ""

    def alive(self, at: int) -> list[int]:
        """The places of the spans that are in use after event *at*."""
        return [
            place
            for place, (begin, end) in enumerate(zip(self.begins, self.ends, strict=True))
            if begin <= at and (end > at or end == FOREVER)
        ]

    def held(self, at: int) -> int:
        """Bytes of all spans that are in use after event *at*."""
        return sum(
            size
            for size, begin, end in zip(self.sizes, self.begins, self.ends, strict=True)
            if begin <= at and (end > at or end == FOREVER)
        )

    def _kept(self) -> list[bool]:
        """Whether each span outlives the beginning of the next backward pass after its own."""
        of_gradients = [named(self.name(kind)).phase is Phase.BACKWARD for kind in self.kinds]
        kept: list[bool] = []
        later = following = None  # the next event at which gradients are allocated, from this one on and after it
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


@once_per_window
def unpacked(window: Holders) -> Course:
    """The window's course; without spans if they are damaged."""
    return Course(window)


def times_us(window: Holders) -> list[int]:
    """When each event was, in µs since the window began; empty if that is not known."""
    try:
        return list(accumulate(numbers(window.times)))
    except ValueError:
        return []
