"""Where the instances of a class hold other objects, and whether a class is the script's own.

A class is asked past its metaclass's code: only what Python itself keeps of it is read.
"""

import os
import sys
from typing import Any, NamedTuple, Optional

from .objects import CLASS, LEFT_LOCALS, LIST, LOCALS, MAPPING, SET, TUPLE, Container, identity

_MODULE: Any = type(sys)
FUNCTION: Any = type(lambda: None)
CELL: Any = type((lambda held: lambda: held)(None).__closure__[0])  # type: ignore[index]
_TYPE: Any = type
GETSET, MEMBER = type(_TYPE.__dict__["__dict__"]), type(_MODULE.__dict__["__dict__"])
_SLOT = type(list.__len__)
_mro, class_dict = _TYPE.__dict__["__mro__"].__get__, _TYPE.__dict__["__dict__"].__get__
_name, module_of = _TYPE.__dict__["__name__"].__get__, _TYPE.__dict__["__module__"].__get__

_LIBRARIES = os.__file__.rpartition("/")[0] + "/", "<frozen ", sys.prefix + "/bin/"
_PACKAGES = "/site-packages/", "/dist-packages/"
INSTALLED = "tensorflow", "keras", "tf_keras"


class View(NamedTuple):
    """A place in an object where it holds others: its attribute of that name, or the object itself.

    If there is a ``container``, they are its values; ``form`` is how a value's key is appended to the path, as an index
    where it is empty. With ``hidden``, the object shows what it holds only to Python's collector.
    """

    attribute: str
    container: Optional[Container] = None
    form: str = ""
    hidden: bool = False


ATTRIBUTES = View("__dict__", MAPPING, ".{}")
CLASS_ATTRIBUTES = View("__dict__", CLASS, ".{}")
GLOBALS, MODULE_GLOBALS = View("", MAPPING, "{}"), View("", MAPPING, ".{}")
FRAME_LOCALS, LEFT_FRAME = View("f_locals", LOCALS, ".{}"), View("f_locals", LEFT_LOCALS, ".{}")
CLOSURE = View("__closure__", TUPLE, ".__closure__[{}]")
CONTENTS = View("cell_contents")
WRAPPED = View("__wrapped__")
"""From a proxy to the object for which it stands."""
STORED = View("_storage")
"""From TensorFlow's own kind of list, as a ``tf.Module`` keeps it, to the list for which it stands."""
USED = View("_tf_should_use_wrapped_value")
"""From what TensorFlow wraps around a result that must not be dropped, as a ``tf.TensorArray``'s, to that result."""
CACHE = View("", LIST, ".<lru_cache>[{}]", hidden=True)
"""From a function with a ``functools.lru_cache`` to what the cache holds. Without a bound, that is in a dict."""
ITERATED = View("", LIST, hidden=True)
"""From an iterator, a generator, a coroutine, a traceback or the frame of a call that has ended to what it holds."""
_SHOWN = {name: View("", LIST, f".<{name}>", hidden=True) for name in ("cycle", "generator")}
"""From those of which the path says what they are."""
QUEUE = ITERATED if sys.version_info < (3, 13) else View("", LIST, "[{}]", hidden=True)
"""From a ``queue.SimpleQueue`` to its items. Before Python 3.13, they are in a list."""
RESULT, COROUTINE = View("_result"), View("_coro")
"""From asyncio's future to its result, and from its task to the coroutine that it runs."""
TRACEBACK = View("__traceback__")
_ITERATED = {
    *(("builtins", name) for name in ("generator", "coroutine", "async_generator")),
    *(("builtins", name) for name in ("list_iterator", "traceback", "enumerate", "map", "zip")),
    *(("itertools", name) for name in ("chain", "cycle", "islice")),
}
if sys.version_info >= (3, 11):
    _ITERATED.add(("builtins", "frame"))  # in earlier ones, a frame holds its caller and all global variables too
_ITEMS = (dict, View("", MAPPING)), (list, View("", LIST)), (tuple, View("", TUPLE)), (set, View("", SET))


class Classes:
    """A cache of what instances of classes hold."""

    def __init__(self) -> None:
        self._views: dict[int, tuple[View, ...]] = {}
        self._shared: dict[tuple[View, ...], tuple[View, ...]] = {}
        self._roots: dict[str, bool] = {}
        self._kept: list[type] = []  # so that no other class gets the identity of one that is known
        self._folders = _package_folders()

    def views(self, kind: type) -> "tuple[View, ...]":
        """Return where instances of *kind* hold objects."""
        found = self._views.get(identity(kind))
        if found is None:
            self._kept.append(kind)
            found = self._find(kind)
            # Most classes have the same views, which are kept once.
            found = self._views[identity(kind)] = self._shared.setdefault(found, found)
        return found

    def is_container(self, kind: type) -> bool:
        """Return whether instances of *kind* are containers, such as lists."""
        return any(view.container is not None and not view.attribute for view in self.views(kind))

    def fields(self, kind: type) -> "tuple[str, ...]":
        """Return the names of the items of a named tuple; none if *kind* is not the class of one."""
        found = [class_dict(owner).get("_fields") for owner in _mro(kind)]
        names = next((each for each in found if each is not None), ())
        return names if type(names) is tuple and all(type(name) is str for name in names) else ()

    def of_library(self, path: Any) -> bool:
        """Return whether the file *path* is Python's own or an installed package's; true also if there is no path."""
        if type(path) is not str or path.endswith(".pyx"):  # as of h5py's compiled code
            return True
        return any(each in path for each in _PACKAGES) or path.startswith(_LIBRARIES + self._folders)

    def is_librarys(self, module: Any) -> bool:
        """Return whether the *module* of that name is not a part of the script."""
        if type(module) is not str:
            return True
        root = module.partition(".")[0]
        found = self._roots.get(root)
        if found is None:
            found = self._roots[root] = root != "__main__" and self.of_library(file_of(root))
        return found

    def _find(self, kind: type) -> "tuple[View, ...]":
        if issubclass(kind, _MODULE):
            return ()
        if issubclass(kind, type):
            return (CLASS_ATTRIBUTES,)
        if kind is FUNCTION:
            return (CLOSURE,)
        if kind is CELL:
            return (CONTENTS,)
        if name_and_module(kind)[::-1] in _ITERATED:
            return (_SHOWN.get(name_and_module(kind)[0], ITERATED),)
        if name_and_module(kind) == ("SimpleQueue", "_queue"):
            return (QUEUE,)
        items = tuple(view for base, view in _ITEMS if issubclass(kind, base))
        slots: list[View] = []
        has_attributes, proxy = False, False
        for owner in _mro(kind):
            name, module = name_and_module(owner)
            if name in ("List", "ListWrapper") and module.endswith(".data_structures"):
                return (STORED,)
            if name == "ShouldUseWrapper" and module.endswith(".tf_should_use"):
                return (USED,)  # its ``__dict__`` cannot be read
            if (name, module) == ("deque", "collections"):
                # The script's class, which may be another one than the agent imports.
                of_deque: Any = class_dict(owner)
                if type(of_deque["__len__"]) is type(of_deque["__iter__"]) is _SLOT:
                    items = (View("", Container(of_deque["__len__"], of_deque["__iter__"])),)
            if (name, module) == ("_lru_cache_wrapper", "functools"):
                return ATTRIBUTES, CACHE
            if name == "_local" and module in ("_thread", "threading"):
                return ()  # a read in this thread would make attributes of its own for it
            names, kinds = list(class_dict(owner)), list(map(type, class_dict(owner).values()))
            in_c = dict(zip(names, kinds))
            if "__dict__" in in_c and not has_attributes:
                if in_c["__dict__"] is not GETSET:
                    return items
                has_attributes = True
            if "__slots__" in in_c or (name, module) in (("method", "builtins"), ("partial", "functools")):
                slots += [View(each) for each, what in in_c.items() if what is MEMBER and each != "__doc__"]
            if (name, module) == ("BaseException", "builtins"):
                slots.append(TRACEBACK)
            if module == "_asyncio":
                slots += [view for view in (RESULT, COROUTINE) if in_c.get(view.attribute) is GETSET]
            if name == "ObjectProxy" and in_c.get("__wrapped__") is GETSET:
                slots.append(WRAPPED)
                proxy = True
        if (self.is_librarys(module_of(kind)) and items) or proxy:
            has_attributes = False  # the other attributes are the library's own book-keeping
        return items + ((ATTRIBUTES,) if has_attributes else ()) + tuple(slots)


def derives(kind: type, base: type) -> bool:
    """Return whether the class *kind* is derived from *base*."""
    return identity(base) in map(identity, _mro(kind))


def name_and_module(kind: type) -> "tuple[str, str]":
    """Return the name and the module of a class, past its metaclass's code; empty where they are not a ``str``."""
    name, module = _name(kind), module_of(kind)
    return name if type(name) is str else "", module if type(module) is str else ""


def file_of(module: str) -> Any:
    """Return the file from which the module of that name was loaded; ``None`` if there is no such module or file."""
    modules = sys.modules
    found = modules.get(module) if type(modules) is dict else None
    if found is None or not issubclass(type(found), _MODULE):
        return None
    return dict.get(object.__getattribute__(found, "__dict__"), "__file__")


def _package_folders() -> "tuple[str, ...]":
    """Return where TensorFlow and Keras were installed, such as with ``pip --target``, unless the script lies there."""
    files = [file_of(name) for name in ("__main__", *INSTALLED)]
    scripts, *packages = [file if type(file) is str else "" for file in files]
    parents = [file.rpartition("/")[0].rpartition("/")[0] + "/" for file in packages]
    return tuple(parent for parent in parents if parent != "/" and not scripts.startswith(parent))
