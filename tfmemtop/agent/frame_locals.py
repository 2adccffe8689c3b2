"""Reads the local variables of functions that run in the script's threads, or that its generators suspend.

``frame.f_locals`` would return them. But before Python 3.13 it leaves a copy behind that keeps the values alive as long
as the function runs, and a tracer of the script's writes such a copy back into the function. So before 3.13 the values
are read from the interpreter's own frames. Where the layout of these is not known, no locals are reported.
"""

import _operator as operator
import ctypes
import sys
from itertools import chain, compress, repeat, starmap
from typing import TYPE_CHECKING, Any, Callable, NamedTuple

from . import real_threads
from .one_step import Container, Way, identity, only, rows, single

if TYPE_CHECKING:
    from collections.abc import Iterator

_VERSION = sys.version_info[:2]
_FRAME: Any = type(sys._getframe())
_MAKING: Any = lambda held: lambda: held  # noqa: E731
_CELL: Any = type(_MAKING(None).__closure__[0])
contents = _CELL.cell_contents.__get__
_caller, _code = _FRAME.f_back.__get__, _FRAME.f_code.__get__

_OPTIMIZED = 1  # CO_OPTIMIZED: the code is of a function, whose locals have places of their own
_HIGHEST = 300
_POINTER = 8

_pointer: Any = ctypes.c_void_p
_object: Any = ctypes.py_object
_at, _value = _pointer.from_address, _pointer.value.__get__
_INTERPRETERS_FRAME, _ITS_LOCALS = 24, 72
"""In ``struct _frame`` and in ``struct _PyInterpreterFrame`` of CPython 3.11 and 3.12 (pycore_frame.h)."""


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
    if _VERSION >= (3, 13):
        return _proxied(found)
    return _in_place(code, found) if _fits() else []


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


def _in_place(code: Any, found: "Callable[[], Iterator[Any]]") -> "list[Local]":
    names, closed = _names(code)
    place = _places(code)
    pointers: Any = _pointer * len(names)
    addresses = list(chain.from_iterable(map(pointers.from_address, place(found()))))
    objects: Any = _object * len(names)

    def way(position: int, cell: bool) -> Way:
        def to(frame: "Iterator[Any]") -> "Iterator[Any]":
            value = map(objects.__getitem__, map(objects.from_address, place(frame)), repeat(position))
            return map(contents, value) if cell else value

        return to

    told = []
    for position, (name, address) in enumerate(zip(names, addresses)):
        if address is None or name.startswith("."):  # not bound, or a comprehension's own
            continue
        try:
            to = way(position, False)
            one = single(to(found()))
            if one is not None and one[1] is _CELL and name in closed:
                to = way(position, True)
                one = single(to(found()))
        except ValueError:  # not bound any more, or not yet
            continue
        if one is not None:
            told.append(Local(name, *one, to))
    return told


def _names(code: Any) -> "tuple[list[str], set[str]]":
    """Return the names of a frame's locals in the order of their places, and which of them may be in cells.

    A cell is shared with a closure.
    """
    own = list(code.co_varnames)
    cells = [name for name in code.co_cellvars if _VERSION < (3, 11) or name not in own]
    return [*own, *cells, *code.co_freevars], {*code.co_cellvars, *code.co_freevars}


def _places(code: Any) -> Way:
    """Return the way from a frame to the address of its first local."""
    if _VERSION >= (3, 11):
        return lambda frame: map(
            _ITS_LOCALS.__add__,
            map(_value, map(_at, map(_INTERPRETERS_FRAME.__add__, map((4).__rlshift__, map(identity, frame))))),
        )
    held = code.co_stacksize + code.co_nlocals + len(code.co_cellvars) + len(code.co_freevars)

    def way(frame: "Iterator[Any]") -> "Iterator[Any]":
        # The locals are at the end of the frame's own memory.
        box: list[Any] = []
        ends = map(operator.add, map(_FRAME.__sizeof__, box), map((4).__rlshift__, map(identity, box)))
        return chain(
            filter(None, map(box.append, frame)),
            map((-_POINTER * held).__add__, ends),
            filter(None, starmap(box.clear, ((),))),
        )

    return way


_known: "list[bool]" = []


def _fits() -> bool:
    """Return whether locals are where this module expects them: tried once, with a function of its own."""
    if not _known:
        _known.append(False)
        _known[0] = sys.implementation.name == "cpython" and not hasattr(sys, "getobjects") and _tried({}, [])
    return _known[0]


def _tried(first: Any, second: Any, third: Any = None) -> bool:
    fourth = first, second
    del third

    def inner() -> Any:
        return second

    code = _tried.__code__
    running = [each for each in stack(real_threads.get_ident()) if each.code is code]
    told = {each.name: each.item for each in _in_place(*running[-1])}
    expected = {"first": first, "second": second, "fourth": fourth, "inner": inner, "running": running}
    return "third" not in told and all(told.get(name) == identity(value) for name, value in expected.items())
