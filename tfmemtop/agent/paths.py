"""Finds paths by which Python holds tensors: ``trainer.history[17]``, ``train.<locals>.kept``, ``Model.cache['x']``.

The search goes forwards, the shortest paths first. It begins at the script's global variables, the local variables of
running functions and the script's modules, and goes through containers, attributes, closures and generators. It does
not go backwards: ``gc.get_referrers`` goes through all objects for each holder, and the script cannot run meanwhile.
Each part is read in one step, from the root on, so a path that is reported did exist at that moment.
"""

import sys
import time
from itertools import chain, islice, repeat, starmap
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Optional

from . import real_threads
from .class_parts import FUNCTION, GENERATOR, Classes, class_dict, module_dict, module_of
from .frame_locals import Running, contents, if_it_runs, locals_of, stack
from .one_step import CLASS, MAPPING, TUPLE, Container, Rows, Way, identity, inner, number, only, rows, single, through

if TYPE_CHECKING:
    from collections.abc import Iterator

_DEEPEST, _NEAR = 12, 1  # pieces of a path
_CHILDREN, _MANY, _INSTANCES, _LARGE = 1_000, 32, 5_000, 10_000
"""For one container: the most objects in it that are searched; the number of objects of one kind from which on they are
searched all at once; the most of these if they are no containers; the number of items from which on the container waits
until smaller ones are done."""
_SOME = 8_000
"""The most objects at one distance from the roots that are searched in their turn. Further ones come after all else."""
_LOOKED = 16  # objects between two reads of the clock
_PATIENCE = 5
_THREADS, _MODULES = 64, 5_000
_KEY = 60  # characters

_GONE = (AttributeError, IndexError, KeyError, TypeError, ValueError, RuntimeError)
"""The exceptions that Python raises if an object on the way has gone or changed meanwhile."""

_MODULE: Any = type(sys)
_code, _defaults, _keywords = (
    FUNCTION.__dict__[name].__get__ for name in ("__code__", "__defaults__", "__kwdefaults__")
)
_closure, _attributes = FUNCTION.__dict__["__closure__"].__get__, FUNCTION.__dict__["__dict__"].__get__


class HoldingPath(NamedTuple):
    """The ``path`` by which a tensor is held, and the path of the ``group`` of all tensors that are held alike.

    ``trainer.history[17]`` is one of ``trainer.history``, ``runs[3].loss`` one of ``runs[*].loss``. The group is empty
    if the tensor is not one of many.
    """

    path: str
    group: str


class Piece(NamedTuple):
    """A piece of a path; an ``item`` is one of many, ``numbered`` if its key is a number."""

    text: str
    item: bool = False
    numbered: bool = False


class _Node(NamedTuple):
    parent: "Optional[_Node]"
    way: Way
    piece: Piece
    item: int
    kind: type
    library: bool
    depth: int


class Search:
    """A search for the paths of the objects *wanted*, given by :data:`identity`. They must stay alive meanwhile."""

    def __init__(self, wanted: "set[int]", kind: type, seconds: float) -> None:
        """The objects are of class *kind*. The search takes about *seconds* of the thread's time at most.

        The script's threads take their turns meanwhile. If they leave the search little time, it ends all the same,
        after ``_PATIENCE`` times *seconds*.
        """
        self.found: dict[int, HoldingPath] = {}
        self._wanted = wanted
        self._until = time.thread_time() + seconds
        self._ends = time.monotonic() + seconds * _PATIENCE
        self._classes = Classes()
        self._empty = {identity(kind)}  # classes, by identity, of objects that hold nothing
        self._seen: set[int] = set()
        self._next: list[_Node] = []
        self._large: list[_Node] = []
        self._late: list[_Node] = []  # in libraries, and what is too much
        self._put_off: set[int] = set()  # large containers that are looked into after the others
        self._looks = 0

    def run(self) -> "dict[int, HoldingPath]":
        """Search, and return the paths that are found in time, by identity."""
        self._attempt(self._globals, "__main__", "")
        running = self._attempt(self._running) or []
        for each in running:
            self._attempt(self._locals, each)
        for name in self._attempt(_modules_by_name) or []:
            if name != "__main__" and not self._classes.is_librarys(name):
                self._attempt(self._globals, name, name)
        while (self._next or self._large or self._late) and not self._over():
            if self._next:
                level, self._next = self._next, []
            elif self._large:
                level = [self._large.pop(0)]
            else:
                level, self._late = self._late, []
            for node in level:
                if self._over():
                    break
                self._attempt(self._look_into, node)
        return self.found

    def _over(self) -> bool:
        self._looks += 1
        if self._looks % _LOOKED == 0 and (time.thread_time() > self._until or time.monotonic() > self._ends):
            self._wanted = set()
        return not self._wanted

    def _attempt(self, look: "Callable[..., Any]", *arguments: Any) -> Any:
        try:
            return None if self._over() else look(*arguments)
        except _GONE:
            return None

    def _globals(self, module: str, name: str) -> None:
        def way(modules: "Iterator[Any]") -> "Iterator[Any]":
            return map(module_dict, filter(None, map(dict.get, modules, repeat(module))))

        root = _Node(None, way, Piece(name), 0, dict, False, 0)
        self._mapping(root, _same, ".{}" if name else "{}")

    def _running(self) -> "list[Running]":
        own = real_threads.get_ident()
        threads = list(chain.from_iterable(starmap(sys._current_frames, ((),))))
        threads.sort(key=lambda each: (each == own, each != real_threads.main))
        return [running for thread in threads[:-1][:_THREADS] for running in stack(thread)]

    def _locals(self, running: Running) -> None:
        code = running.code
        name = getattr(code, "co_qualname", code.co_name)  # from Python 3.11 on
        root = _Node(
            None,
            lambda _: running.found(),
            Piece(f"{name}.<locals>"),
            0,
            dict,
            self._classes.of_library(code.co_filename),
            0,
        )
        for each in locals_of(running):
            self._meet(root, each.way, Piece("." + each.name), each.item, each.kind)

    def _look_into(self, node: _Node) -> None:
        kind = node.kind
        if kind is FUNCTION:
            self._function(node)
        elif kind is GENERATOR:
            self._generator(node)
        elif issubclass(kind, type):
            self._class(node)
        else:
            parts = self._classes.parts(kind)
            if parts.items is not None:
                if node.item not in self._put_off and number(_found(node), parts.items) > _LARGE:
                    self._put_off.add(node.item)
                    self._large.append(node)
                    return
                if parts.items.keys is not None:
                    self._mapping(node, _same, None)
                else:
                    self._sequence(node, parts.items, parts.fields)
            if parts.attributes is not None:
                self._mapping(node, parts.attributes, ".{}")
            for name, way in parts.slots:
                self._attempt(self._single, node, way, Piece("." + name if name else ""))

    def _mapping(self, node: _Node, way: Way, form: Optional[str]) -> None:
        """Search the mapping at the end of *way*. *form* is how a key is appended, as in :func:`_keyed`."""
        read = rows(lambda: way(_found(node)), MAPPING)
        if read is None:
            return
        for position in self._of_interest(read):
            piece = _keyed(read.keys, position, form)
            onward = _after(way, MAPPING.way(position))
            self._meet(node, onward, piece, read.items[position], read.kinds[position])

    def _sequence(self, node: _Node, container: Container, fields: "tuple[str, ...]") -> None:
        read = rows(lambda: _found(node), container)
        if read is None:
            return
        alike = len(read.items) >= _MANY and len(set(map(identity, read.kinds))) == 1
        if alike and self._attempt(self._each, node, container, read.kinds[0]):
            self._late.append(node)  # for the objects that they hold further down
            return
        for position in self._of_interest(read):
            piece = _numbered(position, fields)
            self._meet(node, container.way(position), piece, read.items[position], read.kinds[position])

    def _each(self, node: _Node, container: Container, kind: type) -> bool:
        """Search many objects of one kind at once, such as the transitions of a replay buffer.

        Return whether any of them holds an object that is wanted.
        """
        parts = self._classes.parts(kind)
        way: Way = _same
        held = parts.items
        if held is None and parts.attributes is not None and number(_found(node), container) <= _INSTANCES:
            way, held = parts.attributes, MAPPING
        read = None if held is None else inner(lambda: _found(node), container, way, held)
        if read is None or held is None or self._wanted.isdisjoint(read.items):
            return False
        at = 0
        for position, length in enumerate(read.lengths):
            for inside in range(at, at + length):
                if read.items[inside] in self._wanted:
                    if held.keys is None:
                        piece = _numbered(inside - at, parts.fields)
                    else:
                        piece = _keyed(read.keys, inside, None if way is _same else ".{}")
                    self._wanted.discard(read.items[inside])
                    self.found[read.items[inside]] = _held(node, _numbered(position), piece)
            at += length
        return True

    def _of_interest(self, read: Rows) -> "list[int]":
        """Return the positions of the objects that are wanted, and of those that may hold one."""
        empty, kinds = self._empty, read.kinds
        found = set() if self._wanted.isdisjoint(read.items) else self._wanted
        there = [at for at, item in enumerate(read.items) if item in found] if found else []
        if empty.issuperset(map(identity, kinds)):
            return there
        inside = (at for at, kind in enumerate(map(identity, kinds)) if kind not in empty)
        return sorted({*there, *islice(inside, _CHILDREN)})

    def _meet(self, node: _Node, way: Way, piece: Piece, item: int, kind: type) -> None:
        """Note the path of *item*, to which *way* leads, if it is wanted, and have it searched later."""
        if item in self._wanted:
            self._wanted.discard(item)
            self.found[item] = _held(node, piece)
        if item in self._seen or identity(kind) in self._empty or node.depth >= _DEEPEST:
            return
        if issubclass(kind, _MODULE) or not self._holds(kind):
            self._empty.add(identity(kind))
            return
        self._seen.add(item)
        parts = self._classes.parts(kind)
        library = node.library if parts.items is not None or kind in (FUNCTION, GENERATOR) else parts.library
        made = _Node(node, way, piece, item, kind, library, node.depth + 1)
        later = library or len(self._next) >= _SOME or (kind is FUNCTION and issubclass(node.kind, type))
        (self._late if later else self._next).append(made)

    def _holds(self, kind: type) -> bool:
        return kind in (FUNCTION, GENERATOR) or issubclass(kind, type) or not self._classes.parts(kind).none

    def _single(self, node: _Node, way: Way, piece: Piece) -> None:
        one = single(way(_found(node)))
        if one is not None:
            self._meet(node, way, piece, *one)

    def _class(self, node: _Node) -> None:
        modules = list(map(module_of, _found(node)))
        if not modules or self._classes.is_librarys(modules[0]):
            return
        way = through(class_dict)
        read = rows(lambda: way(_found(node)), CLASS)
        for position in self._of_interest(read) if read else ():
            key = read.keys.get(position) if read else None
            if type(key) is str and read is not None:
                onward = _after(way, CLASS.way(position))
                self._meet(node, onward, Piece("." + key), read.items[position], read.kinds[position])

    def _function(self, node: _Node) -> None:
        (code,) = map(_code, _found(node))
        ways = through(_closure), through(_defaults), through(_keywords)
        closed, defaults, keywords = [list(map(type, way(_found(node)))) for way in ways]
        if closed == [tuple]:
            for position, name in enumerate(code.co_freevars):
                way = _after(ways[0], _after(TUPLE.way(position), through(contents)))
                self._attempt(self._single, node, way, Piece(f".<closure>.{name}"))
        if defaults == [tuple]:
            self._attempt(self._defaults, node, ways[1], code.co_varnames[: code.co_argcount])
        if keywords == [dict]:
            self._attempt(self._mapping, node, ways[2], ".<defaults>.{}")
        # A read of a function's attributes makes a dict for it, so the attributes of methods are not read.
        if node.depth <= _NEAR and not self._classes.of_library(code.co_filename):
            self._attempt(self._mapping, node, through(_attributes), ".{}")

    def _defaults(self, node: _Node, way: Way, arguments: "tuple[str, ...]") -> None:
        read = rows(lambda: way(_found(node)), TUPLE)
        for position in self._of_interest(read) if read else ():
            if read is not None:
                piece = Piece(f".<defaults>.{arguments[position - len(read.items)]}")
                onward = _after(way, TUPLE.way(position))
                self._meet(node, onward, piece, read.items[position], read.kinds[position])

    def _generator(self, node: _Node) -> None:
        (code,) = map(GENERATOR.gi_code.__get__, _found(node))
        frame = GENERATOR.gi_frame.__get__

        def running() -> "Iterator[Any]":
            return if_it_runs(code, filter(None, map(frame, _found(node))))

        for each in locals_of(Running(code, running)):
            to = each.way
            self._meet(node, _after(through(frame), to), Piece(f".<locals>.{each.name}"), each.item, each.kind)


def _modules_by_name() -> "list[str]":
    modules = sys.modules
    names = list(dict.keys(modules))[:_MODULES] if type(modules) is dict else []
    return [name for name in names if type(name) is str]


def _found(node: _Node) -> "Iterator[Any]":
    """Yield the node's object, if it is still held by its path."""
    nodes: list[_Node] = []
    each: Optional[_Node] = node
    while each is not None:
        nodes.append(each)
        each = each.parent
    found: Iterator[Any] = iter((sys.modules,))
    for one in reversed(nodes):
        found = one.way(found)
    # It must still be the object that was found before.
    return only(found, lambda same: map(node.item.__eq__, map(identity, same))) if node.item else found


def _same(found: "Iterator[Any]") -> "Iterator[Any]":
    return found


def _after(first: Way, second: Way) -> Way:
    return lambda found: second(first(found))


def _keyed(keys: "dict[int, Any]", position: int, form: Optional[str]) -> Piece:
    """Return the piece for the key at *position*. *form* is how it is appended; as an index if *form* is ``None``."""
    if position not in keys:
        return Piece("[...]", True)
    key = keys[position]
    return Piece(f"[{_short(key)}]", True, type(key) is int) if form is None else Piece(form.format(key))


def _numbered(position: int, fields: "tuple[str, ...]" = ()) -> Piece:
    return Piece("." + fields[position]) if position < len(fields) else Piece(f"[{position}]", True, True)


def _held(node: _Node, *last: Piece) -> HoldingPath:
    pieces = [*reversed(last)]
    each: Optional[_Node] = node
    while each is not None:
        pieces.append(each.piece)
        each = each.parent
    pieces.reverse()
    path = "".join(piece.text for piece in pieces)
    last_piece, many = pieces[-1], any(piece.numbered for piece in pieces[:-1])
    if not (last_piece.item or many):
        return HoldingPath(path, "")
    # A name at the end stays in the group: the loss of each row is not its step.
    rest = pieces[:-1] if last_piece.numbered or (last_piece.item and not many) else pieces
    return HoldingPath(path, "".join("[*]" if piece.numbered else piece.text for piece in rest))


def _short(key: Any) -> str:
    text = repr(key)
    return text if len(text) <= _KEY else text[: _KEY - 3] + "..."
