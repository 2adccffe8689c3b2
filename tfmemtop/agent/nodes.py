"""The objects that a search for paths has met.

They are kept in columns, because one container for each would make the collector due.
"""

from typing import TYPE_CHECKING, Any

from .objects import Step, attribute, globals_of
from .views import CLOSURE, View

if TYPE_CHECKING:
    from collections.abc import Iterator

ITEM, NUMBERED, LIBRARY = 1, 2, 4  # marks: one of many; its key is a number, or is not plain; in a library


class Nodes:
    """Of each node: its parent, the view and position there, identity and class, piece of the path, marks, depth.

    A root has the parent -1. Nothing is kept of the objects themselves but their classes.
    """

    def __init__(self) -> None:
        self.parents: list[int] = []
        self.views: list[View] = []
        self.positions: list[int] = []
        self.items: list[int] = []
        self.kinds: list[type] = []
        self.texts: list[str] = []
        self.marks: list[int] = []
        self.depths: list[int] = []
        self.threads: dict[int, int] = {}  # of a node that is a frame

    def add(self, parent: int, view: View, position: int, item: int, kind: type, text: str, mark: int) -> int:
        """Add a node, and return its number."""
        self.parents.append(parent)
        self.views.append(view)
        self.positions.append(position)
        self.items.append(item)
        self.kinds.append(kind)
        self.texts.append(text)
        self.marks.append(mark)
        self.depths.append(0 if parent < 0 else self.depths[parent] + 1)
        return len(self.parents) - 1

    def line(self, node: int) -> "list[int]":
        """Return the nodes from the root to *node*."""
        line = []
        while node >= 0:
            line.append(node)
            node = self.parents[node]
        return line[::-1]

    def found(self, step: Step, node: int) -> "Iterator[Any]":
        """Yield the object of *node*, if it is still held by its path."""
        root, *line = self.line(node)
        if root in self.threads:
            found = step.frame(self.threads[root], self.items[root])
        else:
            found = globals_of(self.texts[root] or "__main__")
        for each in line:
            view = self.views[each]
            found = _at(step, view, found)
            found = found if view.container is None else view.container.at(self.positions[each], found)
        return step.same(self.items[node], found) if line and self.items[node] else found

    def held(self, step: Step, node: int, view: View) -> "Iterator[Any]":
        """Yield what *node* has at *view*: a container, or another object."""
        found = self.found(step, node)
        if view is CLOSURE:
            return filter(None, attribute(view.attribute, found))  # a function without one has ``None``
        return _at(step, view, found)


def _at(step: Step, view: View, found: "Iterator[Any]") -> "Iterator[Any]":
    if view.hidden:
        return step.referents(found)
    return attribute(view.attribute, found) if view.attribute else found
