"""The buffers of a window, each from its allocation to its release. Pure."""

import msgspec
from msgspec.structs import asdict

from tfmemtop.events import Holders
from tfmemtop.events.allocations import FOREVER
from tfmemtop.state.attribution import attribution
from tfmemtop.state.holders import Part
from tfmemtop.state.model import Hooked
from tfmemtop.state.step_course import times_us, unpacked


class Lifetime(msgspec.Struct, frozen=True):
    """A buffer: allocated ``from_us`` and released ``to_us`` µs into the window.

    ``from_us`` is ``None`` if it is older than the window, ``to_us`` if it is not released in the window.
    """

    part: Part
    from_us: int | None
    to_us: int | None


class Lifetimes(msgspec.Struct, frozen=True):
    """The ``buffers`` in use in a window, the largest first, over ``whole_us`` µs.

    ``peak_us`` is the moment of the peak, in µs since the window began.
    """

    buffers: tuple[Lifetime, ...]
    whole_us: int
    peak_us: int

    def cells(self, buffer: Lifetime, count: int) -> range:
        """Return in which of *count* equal parts of the window's time *buffer* is in use."""
        last = count - 1 if buffer.to_us is None else self.cell(buffer.to_us, count)
        return range(self.cell(buffer.from_us or 0, count), last + 1)

    def cell(self, at_us: int, count: int) -> int:
        """Return in which of *count* equal parts of the window's time the moment *at_us* is."""
        return max(0, -(-at_us * count // max(1, self.whole_us)) - 1)


def lifetimes(window: Holders, hooked: Hooked) -> Lifetimes:
    """Return the buffers of *window*."""
    return attribution(window, hooked).once("lifetimes", lambda: _lifetimes(window, hooked))


def _lifetimes(window: Holders, hooked: Hooked) -> Lifetimes:
    course, owners, times = unpacked(window), attribution(window, hooked), times_us(window)
    buffers = []
    for place, (begin, end) in enumerate(zip(course.begins, course.ends, strict=True)):
        if not course.addresses[place]:
            continue  # the sum of small allocations for which the event had no room
        holding = course.kinds[course.holdings[place]]
        part = Part(**asdict(owners.of[place]), bytes=holding.size, requested=holding.requested, count=1)
        buffers.append(Lifetime(part, times[begin] if begin >= 0 else None, None if end == FOREVER else times[end]))
    buffers.sort(key=lambda buffer: (-buffer.part.bytes, buffer.from_us or 0))
    peak_us = times[window.peak_at] if 0 <= window.peak_at < len(times) else 0
    return Lifetimes(tuple(buffers), times[-1] if times else 0, peak_us)
