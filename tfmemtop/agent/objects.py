"""Reads the script's objects in steps.

A step goes from an object that is alive anyway down to those of interest, in one call of ``list``. It returns numbers,
texts and classes. While it runs,

- no other thread of the script runs, so what is read belongs together;
- no code of the script's runs: only functions written in C are called, and in the agent's thread none that raises an
  audit event once an object of the script's is held;
- nothing is kept: at its end all else is released. So the agent's thread is never the last to hold an object, whose
  finalizer would then run in it.

That is why a step is put together from ``map``, ``chain`` and their like: they are lazy, and run within that one call.
"""

import gc
import sys
from _weakref import ref
from ctypes import PyDLL
from itertools import chain, compress, islice, repeat, starmap
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Optional

from .collector import MUCH, Collector, NoRoom

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

View = Callable[[Any], Any]
"""The keys or the values of a container."""
Flat = Callable[["Iterable[Any]"], "Iterator[Any]"]
"""From containers to all their keys or values, in a row."""

identity = object.__hash__
"""Returns a number that differs for objects alive at the same time. Unlike ``id``, it raises no audit event."""

GONE = (AttributeError, IndexError, KeyError, TypeError, ValueError, RuntimeError)
"""What a step raises where an object on its way has gone or has changed."""
HEARD = SystemError
"""What a step raises, before an object of the script's is held, where the script would hear an audit event amid it."""

_DICT: Any = dict
_TYPE: Any = type
_MAPPING: Any = type(_TYPE.__dict__)
_FRAME: Any = type(sys._getframe())
_AUDIT: Any = PyDLL(None).PySys_Audit
_REFERENCE: Any = ref
_TASKS = "_scheduled_tasks" if sys.version_info >= (3, 12) else "_all_tasks"
"""Asyncio's weak set of the tasks of all loops."""


async def _nothing() -> None:
    pass


_made = _nothing()
_COROUTINE: Any = type(_made)
_made.close()  # one that was never run would give a warning
_PLAIN = {identity(kind) for kind in (str, int, float, bool, bytes, type(None))}
"""The classes whose instances are plain values: only keys of these classes are read."""


class Step:
    """One step. Its parts are made first, and :meth:`read` runs them.

    Both raise :class:`NoRoom` if the collector might run meanwhile. ``found`` yields the object that the step reads.
    """

    def __init__(self, collector: Collector) -> None:
        if not collector.room(MUCH):
            raise NoRoom
        self._collector = collector
        self._boxes: list[list[Any]] = []
        self.found: Iterator[Any] = iter(())

    def box(self) -> "list[Any]":
        """Return a list for objects of the script's, which is cleared when the step ends."""
        box: list[Any] = []
        self._boxes.append(box)
        return box

    def read(self, *parts: "Iterator[Any]") -> "list[Any]":
        """Return what the *parts* yield, one part after the other."""
        found: list[Any] = []
        self.read_into(found, *parts)
        return found

    def read_into(self, found: "list[Any]", *parts: "Iterator[Any]") -> None:
        """Append what the *parts* yield to *found*, also if one of them fails."""
        release = map(list.clear, self._boxes)
        if not self._collector.room():
            raise NoRoom
        try:
            found.extend(chain(*parts, without_result(release)))
        except BaseException:
            list(release)  # at once, before another thread can run
            raise

    def same(self, item: int, found: "Iterator[Any]") -> "Iterator[Any]":
        """Yield the object that is *found*, if its identity is *item*."""
        box = self.box()
        return chain(without_result(map(box.append, found)), compress(box, map(item.__eq__, map(identity, box))))

    def of_kind(self, kind: type, found: "Iterator[Any]") -> "Iterator[Any]":
        """Yield those of the objects that are *found* whose class is *kind*."""
        box = self.box()
        are = map(identity(kind).__eq__, map(identity, map(type, box)))
        return chain(without_result(map(box.extend, (found,))), compress(box, are))

    def frame(self, thread: int, item: int) -> "Iterator[Any]":
        """Yield the frame of *thread*, as in :meth:`frames_into`, whose identity is *item*."""
        box = self.box()
        return self.same(item, chain(self.frames_into(box, thread), box))

    def frames_into(self, box: "list[Any]", thread: int) -> "Iterator[Any]":
        """Fill the *box* with the frames of *thread*, or of :data:`RAISED`, the innermost first, and yield nothing.

        Of :data:`WAITING`, these are coroutines.
        """
        if thread == WAITING:
            return without_result(map(box.extend, (self._coroutines(),)))
        if thread == RAISED:
            traces = self.box()
            outermost = starmap(getattr, ((sys, "last_traceback"),))
            # The list grows while it is read: the traceback of each inner call is appended.
            inner = filter(None, attribute("tb_next", iter(traces)))
            filled = map(traces.append, outermost), map(traces.extend, (inner,))
            frames = attribute("tb_frame", _reversed(traces))
            return without_result(chain(self.unheard(), *filled, map(box.extend, (frames,))))
        # The one audit event is raised before a frame is held.
        innermost = filter(None, map(dict.get, called(sys._current_frames), repeat(thread)))
        callers = filter(None, map(_FRAME.f_back.__get__, box))  # as above
        return without_result(chain(map(box.append, innermost), map(box.extend, (callers,))))

    def _coroutines(self) -> "Iterator[Any]":
        """Yield the coroutines of asyncio's tasks. Those of subclasses and of other classes are left out."""
        kind: Any = dict.get(vars(dict.__getitem__(sys.modules, "_asyncio")), "Task")  # KeyError: asyncio is not used
        weak = map(dict.get, globals_of("asyncio.tasks"), repeat(_TASKS))  # its truth would be asked in Python code
        tasks = map(_REFERENCE.__call__, chain.from_iterable(attribute("data", weak)))
        return self.of_kind(_COROUTINE, attribute("_coro", self.of_kind(kind, tasks)))

    def unheard(self) -> "Iterator[Any]":
        """Yield nothing. In the agent's thread, raise :data:`HEARD` if the script has an audit hook.

        The hook would run in that thread, and let others run amid the step. In a thread of the script's, as the script
        ends, it may run: some libraries install one, and Python calls it there for a traceback too.

        Without a hook, Python's C function returns 0 at once. Otherwise it first makes the event's arguments by their
        format. The format is not valid, so the function fails, and no hook is called.
        """
        return filter(None, starmap(_AUDIT, ((b"", b"!"),) if self._collector.needed else ()))

    def referents(self, found: "Iterator[Any]") -> "Iterator[Any]":
        """Yield a list of what the object that is *found* holds, for an object of C that shows that in no other way.

        Not where an audit hook would hear it amid the step.
        """
        return chain(self.unheard(), map(gc.get_referents, found))

    def frames(self, thread: int) -> "tuple[list[int], list[str]]":
        """Return identity and description of the frames of *thread*, as in :meth:`frames_into`, the outermost first.

        A frame's own attributes would raise audit events. So it is known by its ``repr``.
        """
        box = self.box()
        read = self.read(self.frames_into(box, thread), map(identity, box), map(repr, box))[::-1]
        return read[len(read) // 2 :], read[: len(read) // 2]

    def threads(self) -> "list[int]":
        """Return Python's threads by number."""
        return self.read(chain.from_iterable(map(dict.keys, called(sys._current_frames))))

    def single(self) -> "Optional[tuple[int, type]]":
        """Return identity and class of the object; ``None`` if there is none."""
        box = self.box()
        read = self.read(without_result(map(box.append, self.found)), map(identity, box), map(type, box))
        return (read[0], read[1]) if len(read) == 2 else None

    def plain(self, fact: "Callable[[Any], Any]") -> Any:
        """Return what the C function *fact* returns for the object, if it is a plain value; else ``...``."""
        box = self.box()
        read = self.read(without_result(map(box.append, map(fact, self.found))), compress(box, _are_plain(box)))
        return read[0] if read else ...

    def values(self, container: "Container", most: int) -> "Values":
        """Return what the container holds, *most* values at most; nothing if it is not there."""
        box = self.box()

        def each(view: View) -> "Iterator[Any]":
            return islice(chain.from_iterable(map(view, box)), most)

        parts: list[Iterator[Any]] = [
            map(container.length, box),
            map(identity, each(container.values)),
            map(type, each(container.values)),
        ]
        keys = container.keys
        if keys is not None:
            # The flag of each key, then the plain ones.
            parts += [_are_plain(each(keys)), compress(each(keys), _are_plain(each(keys)))]
        read = self.read(without_result(map(box.append, self.found)), *parts)
        if not read:
            return Values(0, [], [], [])
        number = min(read[0], most)
        texts = [] if keys is None else _with_gaps(read[1 + 2 * number :], number)
        return Values(read[0], read[1 : 1 + number], read[1 + number :][:number], texts)

    def lengths(self, container: "Container", name: str, inner: "Container") -> "list[int]":
        """Return how many values each of the *inner* containers has, as in :func:`flat`."""
        inside = chain.from_iterable(map(container.values, self.found))
        return self.read(map(inner.length, attribute(name, inside) if name else inside))

    def identities(self, values: Flat) -> "list[int]":
        """Return the identities of all *values* of the container."""
        return self.read(map(identity, values(self.found)))

    def kinds(self, values: Flat) -> "list[int]":
        """Return the identities of the classes of all *values* of the container."""
        return self.read(map(identity, map(type, values(self.found))))

    def facts(self, values: Flat, chosen: bytearray, fact: "Callable[[Any], Any]") -> "Iterator[tuple[int, Any]]":
        """Return the identities of the *chosen* of these *values*, each with what the C function *fact* returns."""
        box = self.box()
        read = self.read(self.filled(box, values, chosen), map(identity, box), map(fact, box))
        return zip(read[: len(read) // 2], read[len(read) // 2 :])

    def plain_keys(self, keys: Flat, chosen: bytearray) -> "list[Any]":
        """Return the *chosen* of these *keys*, with ``...`` for what is not plain."""
        box = self.box()
        read = self.read(self.filled(box, keys, chosen), _are_plain(box), compress(box, _are_plain(box)))
        return _with_gaps(read, sum(chosen))

    def filled(self, box: "list[Any]", values: Flat, chosen: bytearray) -> "Iterator[Any]":
        """Fill the *box* with the *chosen* of these *values* of the container, and yield nothing."""
        return without_result(map(box.extend, (compress(values(self.found), chosen),)))


def without_result(part: "Iterator[Any]") -> "Iterator[Any]":
    """Read *part*, whose values are all ``None``, and yield nothing."""
    return filter(None, part)


def called(function: "Callable[[], Any]") -> "Iterator[Any]":
    """Yield what *function* returns. It is called when this is read."""
    return starmap(function, ((),))


def _reversed(box: "list[Any]") -> "Iterator[Any]":
    """Yield what is in the *box* when this is read, the last first."""
    return chain.from_iterable(map(reversed, (box,)))


def _at(position: int, values: "Iterator[Any]") -> "Iterator[Any]":
    """Yield the value at *position*. The *values* are read to their end, else an iterator would hold them."""
    return compress(values, chain(repeat(False, position), (True,), repeat(False)))


class Container(NamedTuple):
    """The functions that read a kind of container. ``keys`` is ``None`` where values are found by their number."""

    length: "Callable[[Any], int]"
    values: "Callable[[Any], Any]"
    keys: "Optional[Callable[[Any], Any]]" = None
    item: "Optional[Callable[[Any, Any], Any]]" = None

    def at(self, position: int, found: "Iterator[Any]") -> "Iterator[Any]":
        """Yield the value at *position* of the container that is *found*."""
        if self.item is not None:
            part = slice(position, position + 1)  # a list that has become shorter is no error
            return chain.from_iterable(map(self.item, found, repeat(part)))
        # A value is not found by its key: that would compare the script's keys, in code of the script's.
        return _at(position, chain.from_iterable(map(self.values, found)))


MAPPING = Container(_DICT.__len__, _DICT.values, _DICT.keys)
CLASS = Container(_MAPPING.__len__, _MAPPING.values, _MAPPING.keys)
LIST = Container(list.__len__, list.__iter__, None, list.__getitem__)
TUPLE = Container(tuple.__len__, tuple.__iter__, None, tuple.__getitem__)
SET, KEYS = Container(set.__len__, set.__iter__), Container(_DICT.__len__, _DICT.keys)
"""The keys are read where some are objects: ``{executor.submit(load, path): path for path in paths}``."""
LOCALS: Optional[Container] = None
"""The local variables of a function that runs. They are read from Python 3.13 on. Before, ``frame.f_locals`` left a
copy behind, which kept the values alive while the function ran, and which a tracer wrote back into the function."""
if sys.version_info >= (3, 13):
    _PROXY: Any = (lambda: type(sys._getframe().f_locals))()
    LOCALS = Container(_PROXY.__len__, _PROXY.values, _PROXY.keys)


RAISED = -1
"""In the place of a thread: the functions that ended by the exception that ended the script. They run no more, so their
local variables are read in any version."""
LEFT_LOCALS = LOCALS or MAPPING
WAITING = -2
"""In the place of a thread: the coroutines of asyncio's tasks, which show what their local variables hold."""


def attribute(name: str, found: "Iterator[Any]") -> "Iterator[Any]":
    """Yield an attribute of the object that is *found*; the object's class must keep it in C, as it does slots."""
    return map(object.__getattribute__, found, repeat(name))


def globals_of(module: str) -> "Iterator[Any]":
    """Yield the dict of the global variables of a *module* that is imported."""
    return attribute("__dict__", filter(None, map(dict.get, iter((sys.modules,)), repeat(module))))


class Values(NamedTuple):
    """The identities and classes of a container's first values, in their order, and the ``number`` of all.

    ``keys`` has ``...`` for what is not plain. Classes may be kept: only the collector deletes them, and it does not
    run in the agent's thread.
    """

    number: int
    items: "list[int]"
    kinds: "list[type]"
    keys: "list[Any]"


def flat(view: "View", name: str = "", inner: "Optional[View]" = None) -> Flat:
    """Return the function that yields all that *view* shows of containers, in a row.

    With *inner*, it yields all that this shows of the containers in them. With a *name*, these are that attribute of
    the objects in the outer containers.
    """

    def outer(found: "Iterable[Any]") -> "Iterator[Any]":
        return chain.from_iterable(map(view, found))

    def inside(found: "Iterable[Any]") -> "Iterator[Any]":
        held = attribute(name, outer(found)) if name else outer(found)
        return chain.from_iterable(map(inner, held))  # type: ignore[arg-type]

    return outer if inner is None else inside


def _with_gaps(read: "list[Any]", number: int) -> "list[Any]":
    """Return *number* keys; *read* has whether each is plain, and then those that are."""
    texts = read[: number - 1 : -1]
    return [texts.pop() if is_plain else ... for is_plain in read[:number]]


def _are_plain(found: "Iterable[Any]") -> "Iterator[bool]":
    return map(_PLAIN.__contains__, map(identity, map(type, found)))


def text_of(shape: "tuple[int, ...]") -> str:
    """Return a shape as JSON."""
    return str(list(shape))
