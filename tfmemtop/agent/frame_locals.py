"""Reads the local variables of functions that run in the script's threads, or that its generators suspend.

``frame.f_locals`` returns them. Before Python 3.13 it leaves a copy behind that keeps the values alive as long as the
function runs, and a tracer of the script's writes such a copy back into the function. So no locals are read there.
"""

import _operator as operator
import sys
from itertools import chain, compress, repeat, starmap
from typing import TYPE_CHECKING, Any, Callable, NamedTuple

from .one_step import Container, Way, only, rows

if TYPE_CHECKING:
    from collections.abc import Iterator

LOCALS = sys.version_info >= (3, 13)
"""Whether locals are read."""

_FRAME: Any = type(sys._getframe())
_MAKING: Any = lambda held: lambda: held  # noqa: E731
_CELL: Any = type(_MAKING(None).__closure__[0])
contents = _CELL.cell_contents.__get__
_caller, _code = _FRAME.f_back.__get__, _FRAME.f_code.__get__

_OPTIMIZED = 1  # CO_OPTIMIZED: the code is of a function, whose locals have places of their own
_HIGHEST = 300


class Running(NamedTuple):
    """A function that runs; ``found`` returns an iterator of its frame, which is empty if the function has ended."""

    code: Any
    found: "Callable[[], Iterator[Any]]"


class Local(NamedTuple):
    """A local variable: its value's identity and class, and the way to it from the frame."""

    name: str
    item: int
    kind: type
    way: Way


def stack(thread: int) -> "list[Running]":
    """Return the functions that run in *thread*, the outermost first."""
    box: list[Any] = []
    told = list(chain(_fill(box, thread), map(_code, _reversed(box)), starmap(box.clear, ((),))))
    return [Running(code, _inwards(thread, height, code)) for height, code in enumerate(told[:-1][:_HIGHEST])]


def _fill(box: "list[Any]", thread: int) -> "Iterator[Any]":
    """Return an iterator that yields nothing, but fills the *box* with *thread*'s frames, the innermost first."""
    innermost = filter(None, map(dict.get, starmap(sys._current_frames, ((),)), repeat(thread)))
    # The list grows during this iteration: the caller of each frame is added.
    callers = filter(None, map(_caller, box))
    return filter(None, chain(map(box.append, innermost), map(box.extend, (callers,))))


def _inwards(thread: int, height: int, code: Any) -> "Callable[[], Iterator[Any]]":
    """Return a function that finds the frame *height* calls inwards from the outermost, if it still runs *code*.

    The count begins at the outermost frame, since that changes less often than the innermost one.
    """

    def found() -> "Iterator[Any]":
        box: list[Any] = []
        frame = compress(_reversed(box), chain(repeat(False, height), (True,), repeat(False)))
        return chain(_fill(box, thread), if_it_runs(code, frame), filter(None, starmap(box.clear, ((),))))

    return found


def _reversed(box: "list[Any]") -> "Iterator[Any]":
    """Iterate over the *box* from its end, as the box is when the iteration begins."""
    return chain.from_iterable(map(reversed, (box,)))


def if_it_runs(code: Any, frame: "Iterator[Any]") -> "Iterator[Any]":
    """Yield the same frame, but only if *code* is what it runs."""
    return only(frame, lambda same: map(operator.is_, map(_code, same), repeat(code)))


def locals_of(running: Running) -> "list[Local]":
    """Return the local variables of a function; none if the code is not a function's, or they cannot be read."""
    code, found = running
    if not code.co_flags & _OPTIMIZED:
        return []
    return _proxied(found) if LOCALS else []


def _proxied(found: "Callable[[], Iterator[Any]]") -> "list[Local]":
    proxy: Any = type(sys._getframe().f_locals)
    container = Container(proxy.__len__, proxy.values, proxy.keys)
    of_frame = _FRAME.f_locals.__get__
    read = rows(lambda: map(of_frame, found()), container)
    if read is None:
        return []

    def way(position: int) -> Way:
        value = container.way(position)
        return lambda frame: value(map(of_frame, frame))

    return [Local(name, read.items[at], read.kinds[at], way(at)) for at, name in read.keys.items()]
