"""A series of values over time, in bounded memory however long it goes on."""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


def earlier(first: T, _: T) -> T:
    """Merge two values into the first of them."""
    return first


class Series(Generic[T]):
    """Values over time, in windows of equal width. The values of one window are merged into one, by *merge*.

    When there are more than *most* windows, they double in width, so that the whole time is kept; with *rolling*, the
    oldest window is dropped instead. A window without a value takes no room.
    """

    __slots__ = ("_merge", "_most", "_rolling", "numbers", "width_s", "windows")

    def __init__(self, merge: Callable[[T, T], T], width_s: float, most: int, *, rolling: bool = False) -> None:
        """*width_s* is a power of two, or its multiples are as exact: else a value may fall into the window before."""
        self._merge = merge
        self._most = most
        self._rolling = rolling
        self.width_s = width_s
        self.windows: list[T] = []
        """What each window has, the oldest first."""
        self.numbers: list[int] = []
        """The number of each window: window 0 begins at 0 s."""

    def add(self, t: float, value: T) -> None:
        """Add *value* at *t* seconds. A time before the newest window counts as within it."""
        self._put(int(t / self.width_s), value)
        if len(self.windows) > self._most:
            if self._rolling:
                del self.windows[0], self.numbers[0]
            else:
                self.bound(self._most)

    def bound(self, most: int) -> None:
        """Keep at most so many windows from now on, which become wider until that holds."""
        self._most = most
        while len(self.windows) > most:
            numbers, windows = self.numbers, self.windows
            self.numbers, self.windows = [], []
            self.width_s *= 2
            for number, value in zip(numbers, windows, strict=True):
                self._put(number // 2, value)

    def within(self, first: int, stop: int) -> Iterator[T]:
        """Yield the values of the windows numbered *first* to *stop* (excluded).

        A value holds until the next one. So if window *first* has none, the value before it comes first. After the
        newest value there is none.
        """
        at = bisect_left(self.numbers, first)
        if 0 < at < len(self.numbers) and self.numbers[at] > first:
            at -= 1
        while at < len(self.numbers) and self.numbers[at] < stop:
            yield self.windows[at]
            at += 1

    def copy(self) -> "Series[T]":
        """Return a copy, which later additions do not change."""
        copy = Series(self._merge, self.width_s, self._most, rolling=self._rolling)
        copy.numbers, copy.windows = self.numbers.copy(), self.windows.copy()
        return copy

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Series):
            return NotImplemented
        return (self.width_s, self.numbers, self.windows) == (other.width_s, other.numbers, other.windows)

    def _put(self, number: int, value: T) -> None:
        if self.numbers and number <= self.numbers[-1]:
            self.windows[-1] = self._merge(self.windows[-1], value)
        else:
            self.numbers.append(number)
            self.windows.append(value)
