"""Finds paths by which Python holds tensors and variables: ``trainer.history[17]``, ``train.<locals>.kept``.

The search goes forwards, the shortest paths first. It begins at the script's global variables, its modules, the local
variables of running functions and the coroutines of asyncio's tasks, and goes through containers, attributes and
closures. It does not go backwards: ``gc.get_referrers`` goes through all objects for each holder, and crashes on Python
3.11 where an object makes its dict for that. Each part is read in one step from the root on, so a path that is reported
did exist at that moment. What Python shows only with an audit event, such as what a generator holds, is searched only
if the script has no audit hook. The default values of arguments are not searched.

The nodes of the search are kept in columns, because one container for each would make the collector due.
"""

import sys
import time
from itertools import accumulate, islice
from typing import Any, Callable, Optional

from . import real_threads
from .collector import MUCH, ROOM, Collector, NoRoom
from .nodes import ITEM, LIBRARY, NUMBERED, Arrays, Nodes
from .objects import GONE, HEARD, KEYS, LOCALS, RAISED, TUPLE, WAITING, Flat, Step, Values, flat, identity, text_of
from .paths import Found, container_of, write
from .views import (
    ATTRIBUTES,
    CACHE,
    CELL,
    CLASS_ATTRIBUTES,
    FRAME_LOCALS,
    FUNCTION,
    GLOBALS,
    ITERATED,
    LEFT_FRAME,
    MODULE_GLOBALS,
    STORED,
    USED,
    WRAPPED,
    Classes,
    View,
    module_of,
)

_DEEPEST, _NEAR = 12, 1  # steps from the root
_MOST, _MOST_KEYS = 200_000, 50_000  # values of a container; one with more is left out. To read so many takes 40 ms.
_CHILDREN = 1_000  # objects in one container that are searched further
_MANY, _INSTANCES = 32, 5_000
"""From so many objects of one kind on, a container's objects are searched all at once; the most of these if they are
no containers."""
_AT_FIRST = 1_000  # values of a container that are read together with their number
_LARGE = 10_000  # values of a container, from which on it is searched after the others
_SOME = 8_000  # objects at one distance from the roots; further ones are searched after the others
_LOOKED = 16  # objects between two reads of the clock
_PATIENCE = 5
_TRIES = 3
_THREADS, _FRAMES, _MODULES = 64, 300, 5_000
_KEY = 60  # characters
_HELD = 32  # tensors

_SOON, _LATE, _LAST = range(3)
"""Ranks of nodes: late is what lies in libraries or is much, last the functions and the book-keeping of libraries, and
what the local variables of their functions hold."""
_CODE = FUNCTION, CELL
_BOOKS = "._self_", "._tracker", "._auto_config", "._inbound_nodes", "._outbound_nodes"
"""Attributes in which TensorFlow and Keras keep again, with much else, what a model's other attributes hold."""


class Search:
    """A search for the paths of tensors and variables. All but the paths that it returns is released at its end."""

    def __init__(
        self,
        wanted: "set[int]",
        kind: type,
        variables: "dict[int, type]",
        owner: type,
        collector: Collector,
        seconds: float,
        until: Optional[float],
        shape: "Callable[[Any], Any]",
        raised: bool = False,
    ) -> None:
        """*wanted* are the identities of tensors of class *kind*; the C function *shape* returns the shape of one.

        *variables* are classes of variables, and of gradient tapes, by identity. *owner* is the base class of what
        holds variables in TensorFlow and Keras, such as layers and optimizers, and of variables.

        The search takes about *seconds* of the thread's time at most. The script's
        threads take their turns meanwhile. If they leave it little time, or no room for containers, it ends all the
        same: at *until*, or after ``_PATIENCE`` times *seconds*.

        *raised* is whether an exception has ended the script: then the functions that it left are searched too.
        """
        self._raised = raised
        self._wanted = wanted
        self._kind = kind
        self._variables = variables
        self._leaves = {identity(kind), *map(identity, variables.values())}
        self._owner = owner
        self._shape = shape
        self._shapes: dict[int, str] = {}
        self._collector = collector
        self._until = time.thread_time() + seconds
        self._ends = until or time.monotonic() + seconds * _PATIENCE
        self._over = False
        self.heard = False
        """Whether something was not looked at, since the script would have heard that by its audit hook."""
        self._classes = Classes()
        self._seen: set[int] = set()
        self._paths: dict[int, int] = {}  # by identity of a tensor or variable: its node
        self._waiting: list[list[int]] = [[], [], []]  # nodes to be searched, by rank
        self._looks = 0
        self._nodes = Nodes()
        self._arrays = Arrays()
        # Whether the search may end once all is found: arrays are met in all of the script's own objects.
        self._may_end = False

    def run(self) -> Found:
        """Search, and return the paths that are found in time."""
        self._attempt(self._look_into_module, "__main__")
        if LOCALS is not None:
            self._attempt(self._look_into_threads)
        if self._raised:
            self._attempt(self._look_into_frames, RAISED, LEFT_FRAME)
        for name in self._attempt(_module_names) or ():
            if name != "__main__" and not self._classes.is_librarys(name):
                self._attempt(self._look_into_module, name)
        self._attempt(self._look_into_tasks)
        self._go_on(_LAST)
        found = Found({}, {}, {}, self._shapes, self._arrays.rows())
        write(found, self._nodes, self._paths, self._owner)
        return found

    def _go_on(self, most: int) -> None:
        """Search what has been met, and what is met then, up to the rank *most*."""
        while any(self._waiting[: most + 1]) and not self._over:
            rank = next(rank for rank in range(most + 1) if self._waiting[rank])
            level, self._waiting[rank] = self._waiting[rank], []
            self._may_end |= rank > _SOON
            for node in level:
                for view in self._views_of(node):
                    self._attempt(self._look_into, node, view, rank > _SOON)

    @property
    def cut_short(self) -> bool:
        """Whether there was no time to find a path to everything."""
        return self._over and bool(self._wanted or self._variables)

    def arrays_of_globals(self) -> "list[str]":
        """Return the large arrays among the global variables of the script, as they are sent."""
        self._attempt(self._look_into_module, "__main__")
        return self._arrays.rows()

    def _attempt(self, look: "Callable[..., Any]", *arguments: Any) -> Any:
        self._looks += 1
        done = self._may_end and not (self._wanted or self._variables)
        if self._looks % _LOOKED == 0:
            done |= time.thread_time() > self._until or time.monotonic() > self._ends
        if done:
            self._over = True
        for _ in range(_TRIES):
            if self._over or not self._collector.wait(MUCH + ROOM, self._ends):
                self._over = True
                break
            try:
                return look(*arguments)
            except NoRoom:
                continue
            except (HEARD, *GONE) as error:
                self.heard |= isinstance(error, HEARD)
                break
        return None

    def _look_into_module(self, name: str) -> None:
        main = name == "__main__"
        view = GLOBALS if main else MODULE_GLOBALS
        self._look_into(self._nodes.add(-1, view, 0, 0, dict, "" if main else name, 0), view, True)

    def _look_into_threads(self) -> None:
        others = [each for each in Step(self._collector).threads() if each != real_threads.get_ident()]
        for thread in sorted(others, key=lambda each: each != real_threads.main)[:_THREADS]:
            self._look_into_frames(thread, FRAME_LOCALS)

    def _look_into_frames(self, thread: int, view: View) -> None:
        items, texts = Step(self._collector).frames(thread)
        for height in range(min(len(items), _FRAMES)):
            # <frame at 0x7f31, file '/home/ada/train.py', line 3, code train>
            place, _, code = texts[height].rpartition(", code ")
            if thread == RAISED and code == "<module>>":
                continue  # its variables are the module's
            file = place.partition(", file ")[2].rpartition(", line ")[0][1:-1]
            mark = LIBRARY if self._classes.of_library(file) else 0
            text = f"{code[:-1]}.<locals>"
            node = self._nodes.add(-1, view, height, items[height], object, text, mark)
            self._nodes.threads[node] = thread
            self._attempt(self._look_into, node, view, False)
            if thread == RAISED:
                self._go_on(_SOON)  # what an outer function holds is handed to inner ones under other names

    def _look_into_tasks(self) -> None:
        for item, text in zip(*Step(self._collector).frames(WAITING)):
            # <coroutine object Server.answer at 0x7f31>
            name = text.partition(" object ")[2].rpartition(" at ")[0]
            node = self._nodes.add(-1, ITERATED, 0, item, object, f"{name}.<locals>", 0)
            self._nodes.threads[node] = WAITING
            self._attempt(self._look_into, node, ITERATED, False)

    def _views_of(self, node: int) -> "tuple[View, ...]":
        kind = self._nodes.kinds[node]
        views = self._classes.views(kind)
        if kind is FUNCTION and self._nodes.depths[node] <= _NEAR and not self._nodes.marks[node] & LIBRARY:
            # A read of a function's attributes makes a dict for it, so the attributes of methods are not read.
            return (*views, ATTRIBUTES)
        return views

    def _look_into(self, node: int, view: View, late: bool) -> None:
        """Read what *node* holds in *view*: note what is wanted there, and have the rest searched later."""
        container = view.container
        if container is None:
            one = self._held(node, view).single()
            if one is not None and (one[1] is not self._kind or self._wanted_among(node, view, [one[0]], iter)):
                self._meet(node, view, -1, *one, "" if view in (WRAPPED, STORED, USED) else f".{view.attribute}", 0)
            return
        if view is CLASS_ATTRIBUTES and self._classes.is_librarys(self._held(node, View("")).plain(module_of)):
            return
        read = self._held(node, view).values(container, _AT_FIRST)
        number = read.number
        if number > (_MOST if container.keys is None else _MOST_KEYS):
            return
        if number > _LARGE and not late:
            self._waiting[_LATE].append(node)
            return
        if number > _AT_FIRST:
            read = self._held(node, view).values(container, number)
        if ... in read.keys and not view.attribute:
            self._attempt(self._look_into, node, View("", KEYS), late)
        kinds = dict(zip(map(identity, read.kinds), read.kinds))
        many = number >= _MANY and len(kinds) == 1 and container.keys is None and not late
        if many and self._attempt(self._look_into_each, node, view, read.kinds[0], number):
            self._waiting[_LATE].append(node)  # for the objects that they hold further down
            return
        fields = self._fields(self._nodes.kinds[node], view)
        there = self._wanted_among(node, view, read.items, flat(container.values))
        if identity(self._arrays.kind) in kinds:
            self._note_arrays(node, view, flat(container.values), read, fields)
        holding = {each for each, kind in kinds.items() if self._may_hold(kind)}
        if holding:
            kind_of = enumerate(map(identity, read.kinds))
            there = sorted({*there, *islice((at for at, kind in kind_of if kind in holding), _CHILDREN)})
        for at in there:
            text, mark = _piece(view, read.keys[at] if read.keys else at, fields)
            if view is CACHE and read.kinds[at] is dict:
                text, mark = container_of(text), 0
            self._meet(node, view, at, read.items[at], read.kinds[at], text, mark)

    def _held(self, node: int, view: View) -> Step:
        """Return a step to what *node* has at *view*."""
        step = Step(self._collector)
        step.found = self._nodes.held(step, node, view)
        return step

    def _note_arrays(self, node: int, view: View, values: Flat, read: Values, fields: "tuple[str, ...]") -> None:
        """Note the large arrays of NumPy's among the *values* of *node* in *view*, which were *read*."""

        def path_of(at: int) -> str:
            line = "".join(self._nodes.texts[each] for each in self._nodes.line(node))
            return line + _piece(view, read.keys[at] if read.keys else at, fields)[0]

        kind = self._arrays.kind
        self._arrays.note(self._held(node, view), values, bytearray(each is kind for each in read.kinds), path_of)

    def _note_arrays_of_each(self, node: int, view: View, values: Flat, ends: "list[int]") -> None:
        """Note the arrays among all *values* of the objects in *node*; *ends* are their numbers up to each object."""
        line = "".join(self._nodes.texts[each] for each in self._nodes.line(node))
        kind = identity(self._arrays.kind)
        chosen = bytearray(each == kind for each in self._held(node, view).kinds(values))
        if any(chosen):

            def path_of(at: int) -> str:
                return f"{line}[{next(place for place, end in enumerate(ends) if end > at)}]"

            self._arrays.note(self._held(node, view), values, chosen, path_of)

    def _wanted_among(self, node: int, view: View, items: "list[int]", values: Flat) -> "list[int]":
        """Return the positions of what is wanted among *items*, the identities of *values* in *view*.

        The shapes of tensors are read. TensorFlow lets other threads run meanwhile, so only a few tensors are held at a
        time.
        """
        variables = [at for at, item in enumerate(items) if item in self._variables]
        if self._wanted.isdisjoint(items):
            return variables
        wanted = [at for at, item in enumerate(items) if item in self._wanted]
        for first in range(0, len(wanted), _HELD):
            chosen = bytearray(len(items))
            for at in wanted[first : first + _HELD]:
                chosen[at] = True
            read = self._held(node, view).facts(values, chosen, self._shape)
            self._shapes.update((item, text_of(shape)) for item, shape in read if item in self._wanted)
        return sorted((*variables, *(at for at in wanted if items[at] in self._shapes)))

    def _may_hold(self, kind: type) -> bool:
        return identity(kind) not in self._leaves and bool(self._classes.views(kind))

    def _look_into_each(self, node: int, view: View, kind: type, number: int) -> bool:
        """Search a *number* of objects of one *kind* at once, such as the transitions of a replay buffer.

        Return whether any of them holds a tensor or a variable that is wanted.
        """
        within = next(iter(self._classes.views(kind)), View(""))
        outer, container = view.container, within.container
        if outer is None or container is None or (within.attribute and number > _INSTANCES):
            return False
        numbers = self._held(node, view).lengths(outer, within.attribute, container)
        if sum(numbers) > _MOST:
            return False
        values_of_each = flat(outer.values, within.attribute, container.values)
        items = self._held(node, view).identities(values_of_each)
        there = self._wanted_among(node, view, items, values_of_each)
        keys: list[Any] = []
        if container.keys is not None and there:
            sought, of_each = set(there), flat(outer.values, within.attribute, container.keys)
            keys = self._held(node, view).plain_keys(of_each, bytearray(at in sought for at in range(len(items))))[::-1]
        ends = list(accumulate(numbers))
        self._note_arrays_of_each(node, view, values_of_each, ends)
        fields = self._fields(kind, within)
        position = 0
        for found in there:
            while ends[position] <= found:
                position += 1
            at = found - (ends[position] - numbers[position])
            text, mark = _piece(view, position, ())
            holder = self._nodes.add(node, view, position, 0, kind, text, mark)
            piece = _piece(within, keys.pop() if keys else at, fields)
            self._meet(holder, within, at, items[found], self._variables.get(items[found], self._kind), *piece)
        return bool(there)

    def _meet(self, parent: int, view: View, position: int, item: int, kind: type, text: str, mark: int) -> None:
        """Note the path of the object *item* if it is wanted; else have it searched later."""
        if identity(kind) in self._leaves:
            if self._variables.get(item) is kind or (kind is self._kind and item in self._wanted):
                self._wanted.discard(item)
                self._variables.pop(item, None)
                self._paths[item] = self._nodes.add(parent, view, position, item, kind, text, mark)
            return
        if item in self._seen or self._nodes.depths[parent] >= _DEEPEST or not self._may_hold(kind):
            return
        inherits = kind in _CODE or self._classes.is_container(kind)
        library = self._nodes.marks[parent] & LIBRARY if inherits else self._classes.is_librarys(module_of(kind))
        library = library and text != "._python_function"  # what a tf.function was made of
        method = kind is FUNCTION and issubclass(self._nodes.kinds[parent], type)
        late = library or method or len(self._waiting[_SOON]) >= _SOME
        passed = library and parent in self._nodes.threads and self._nodes.marks[parent] & LIBRARY
        if not passed:  # a library's function was given it: another path to it is shown if there is one
            self._seen.add(item)
        node = self._nodes.add(parent, view, position, item, kind, text, mark | (LIBRARY if library else 0))
        last = passed or (library and (kind in _CODE or issubclass(kind, type) or text.startswith(_BOOKS)))
        self._waiting[_LAST if last else _LATE if late else _SOON].append(node)

    def _fields(self, kind: type, view: View) -> "tuple[str, ...]":
        """Return the names of a named tuple's items; none for any other container."""
        named = view.container is TUPLE and not view.attribute and kind is not tuple
        return self._classes.fields(kind) if named else ()


def _piece(view: View, key: Any, fields: "tuple[str, ...]") -> "tuple[str, int]":
    """Return the piece of a path for the value at *key*, and its marks."""
    if view.hidden:
        return view.form.format(key), ITEM | NUMBERED if "{" in view.form else 0
    if view.form:
        return (view.form.format(key), 0) if key is not ... else ("[...]", ITEM)
    if type(key) is int:
        return (f".{fields[key]}", 0) if key < len(fields) else (f"[{key}]", ITEM | NUMBERED)
    if key is ...:
        return "[...]", ITEM | NUMBERED
    text = repr(key)
    return f"[{text if len(text) <= _KEY else text[: _KEY - 3] + '...'}]", ITEM


def _module_names() -> "list[str]":
    modules = sys.modules
    names = list(dict.keys(modules))[:_MODULES] if type(modules) is dict else []
    return [name for name in names if type(name) is str]
