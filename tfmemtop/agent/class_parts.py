"""What the instances of a class hold, and the C functions that read it without running the script's code."""

import os
import sys
from typing import Any, NamedTuple, Optional

from .one_step import CLASS, LIST, MAPPING, TUPLE, Container, Way, identity, rows, through

_TYPE: Any = type
_of_type = _TYPE.__dict__
_mro, _name, module_of = _of_type["__mro__"].__get__, _of_type["__name__"].__get__, _of_type["__module__"].__get__
class_dict = _of_type["__dict__"].__get__

_MODULE: Any = type(sys)
module_dict = _MODULE.__dict__["__dict__"].__get__

_GETSET, _MEMBER = type(_of_type["__dict__"]), type(_MODULE.__dict__["__dict__"])
_SLOT = type(object.__repr__)
FUNCTION: Any = type(lambda: None)
GENERATOR: Any = type(_ for _ in ())


class _Bound:
    def method(self) -> None:
        """Exist only so that the class of bound methods can be read."""


_METHOD: Any = type(_Bound().method)

_LIBRARIES = os.__file__.rpartition("/")[0] + "/", "<frozen "
_PACKAGES = "/site-packages/", "/dist-packages/"
_INSTALLED = "tensorflow", "keras", "tf_keras"


class Parts(NamedTuple):
    """What the instances of a class hold.

    ``items`` is how to read a container, and ``fields`` are the names of a named tuple's items. ``attributes`` is the
    way to the attributes' dict. ``slots`` are names and ways. A slot without a name leads from a proxy to the object
    for which it stands. ``library``: the class is not the script's.
    """

    library: bool
    items: Optional[Container] = None
    fields: "tuple[str, ...]" = ()
    attributes: Optional[Way] = None
    slots: "tuple[tuple[str, Way], ...]" = ()

    @property
    def none(self) -> bool:
        """Whether the instances hold nothing that can be searched."""
        return self.items is None and self.attributes is None and not self.slots


def name_and_module(kind: type) -> "tuple[str, str]":
    """Return the name and the module of a class, past its metaclass's code; empty where they are not a ``str``."""
    name, module = _name(kind), module_of(kind)
    return name if type(name) is str else "", module if type(module) is str else ""


class Classes:
    """A cache of the parts of classes."""

    def __init__(self) -> None:
        self._known: dict[
            int, tuple[type, Parts]
        ] = {}  # by identity; the class is held so that no other class gets its identity
        self._roots: dict[str, bool] = {}
        self._folders = _package_folders()

    def of_library(self, path: Any) -> bool:
        """Return whether the file *path* is Python's own or an installed package's; true also if there is no path."""
        if type(path) is not str:
            return True
        installed = any(each in path for each in _PACKAGES)
        return installed or path.startswith(_LIBRARIES + self._folders)

    def parts(self, kind: type) -> Parts:
        """Return what instances of *kind* hold."""
        known = self._known.get(identity(kind))
        if known is None:
            known = self._known[identity(kind)] = kind, self._parts(kind)
        return known[1]

    def is_librarys(self, module: Any) -> bool:
        """Return whether the module of that name is not a part of the script."""
        if type(module) is not str:
            return True
        root = module.partition(".")[0]
        found = self._roots.get(root)
        if found is None:
            found = self._roots[root] = root != "__main__" and self.of_library(file_of(root))
        return found

    def _parts(self, kind: type) -> Parts:
        module = module_of(kind)
        library = self.is_librarys(module)
        if kind in (FUNCTION, GENERATOR) or issubclass(kind, (_TYPE, _MODULE)):
            return Parts(library)
        items = fields = None
        for base, container in ((dict, MAPPING), (list, LIST), (tuple, TUPLE)):
            if issubclass(kind, base):
                items = container
        attributes: Optional[Way] = None
        slots: list[tuple[str, Way]] = []
        for owner in _mro(kind):
            name, of = name_and_module(owner)
            if name == "_local" and of in ("_thread", "threading"):
                return Parts(library)  # thread-local: a read in this thread would make attributes of its own for it
            inside = owner in (_METHOD,) or (name, of) == ("partial", "functools")
            held = rows(lambda: map(class_dict, (owner,)), CLASS)  # noqa: B023 (called before the next turn)
            if held is None:
                continue
            inside = inside or "__slots__" in held.keys.values()
            for position, key in held.keys.items():
                what = held.kinds[position]
                if what is _MEMBER and inside and type(key) is str:
                    slots.append((key, through(_fetched(owner, position))))
                elif what is _GETSET and key == "__dict__" and attributes is None:
                    attributes = through(_fetched(owner, position))
                elif what is _GETSET and key == "__wrapped__" and name == "ObjectProxy":
                    slots.append(("", through(_fetched(owner, position))))
                elif key == "_fields" and what is tuple and items is TUPLE:
                    fields = _texts(owner, position)
            if (name, of) == ("deque", "collections") and _SLOT in held.kinds:
                items = Container(owner.__len__, owner.__iter__, None, owner.__getitem__)
        if (library and items is not None) or any(not name for name, _ in slots):
            attributes = None  # the other attributes are the library's own book-keeping
        return Parts(library, items, fields or (), attributes, tuple(slots))


def file_of(module: str) -> Any:
    """Return the file from which the module of that name was loaded; ``None`` if there is no such module or file."""
    modules = sys.modules
    found = modules.get(module) if type(modules) is dict else None
    if found is None or not issubclass(type(found), _MODULE):
        return None
    return dict.get(module_dict(found), "__file__")


def _package_folders() -> "tuple[str, ...]":
    """Return where TensorFlow and Keras were installed, such as with ``pip --target``, unless the script lies there."""
    files = [file_of(name) for name in ("__main__", *_INSTALLED)]
    scripts, *packages = [file if type(file) is str else "" for file in files]
    parents = [file.rpartition("/")[0].rpartition("/")[0] + "/" for file in packages]
    return tuple(parent for parent in parents if parent != "/" and not scripts.startswith(parent))


def _fetched(owner: type, position: int) -> Any:
    """Return the C function by which a descriptor of *owner* returns its value."""
    (descriptor,) = CLASS.way(position)(map(class_dict, (owner,)))
    if type(descriptor) not in (_GETSET, _MEMBER):
        raise TypeError(type(descriptor))
    return descriptor.__get__


def _texts(owner: type, position: int) -> "tuple[str, ...]":
    (texts,) = CLASS.way(position)(map(class_dict, (owner,)))
    return texts if type(texts) is tuple and all(type(text) is str for text in texts) else ()
