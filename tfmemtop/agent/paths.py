"""Writes the paths that a search has found, and groups those that are alike."""

from typing import TYPE_CHECKING, NamedTuple

from .nodes import ITEM, LIBRARY, NUMBERED, Nodes
from .objects import TUPLE
from .views import derives

if TYPE_CHECKING:
    from collections.abc import Iterable


_MANY_KEYS = 8
"""A dict with more keys than these, each of which leads to tensors, is one group. With fewer each key has its own."""

_OWN = 3
"""Nodes of a path from a function of a library's through a local variable to an item of it. What such a function holds
itself, such as the gradients of the step, is of this call."""


class Found(NamedTuple):
    """What a search has found, by the identity of the tensors and variables.

    There are the paths by which they are held, and the paths of the groups of all that are held alike:
    ``trainer.history[17]`` is one of ``trainer.history``, ``runs[3].loss`` one of ``runs[*].loss``,
    ``users["ada"].past[3]`` one of ``users[*].past`` if there are many users. Of tensors
    ``groups`` has only those that are one of many. Variables belong to the object of TensorFlow's or Keras's that the
    script holds: those of ``models[3]``, a model with its optimizer, are all of ``models[*]``. ``items`` has a number
    for the item of the outermost container on a path; of a model's variable, for that of the innermost one.
    ``shapes`` has texts such as ``[2, 3]``, of tensors only. ``arrays`` are large arrays of NumPy's as they are sent.
    """

    paths: "dict[int, str]"
    groups: "dict[int, str]"
    items: "dict[int, int]"
    shapes: "dict[int, str]"
    arrays: "list[str]"


class _Groups:
    """Names the groups of tensors and variables. *owner* is as in :class:`Search`."""

    def __init__(self, nodes: Nodes, ends: "Iterable[int]", owner: type) -> None:
        """*ends* are the nodes of all tensors and variables that were found."""
        self._nodes = nodes
        self._owner = owner
        self._held: dict[int, int] = {}  # by node: from how many positions paths go on
        seen: set[int] = set()
        for end in ends:
            for each in nodes.line(end):
                if self.place(each) not in seen:
                    seen.add(self.place(each))
                    self._held[nodes.parents[each]] = self._held.get(nodes.parents[each], 0) + 1

    def place(self, node: int) -> int:
        """Return a number for the position of *node* in its parent."""
        return self._nodes.parents[node] << 32 | self._nodes.positions[node]

    def of_tensor(self, line: "list[int]") -> str:
        """Return the group of the tensor at the end of *line*; empty if it is not one of many."""
        texts, marks = [self._nodes.texts[each] for each in line], [self._nodes.marks[each] for each in line]
        last, many = marks[-1], any(mark & NUMBERED for mark in marks[:-1])
        alike = [mark & NUMBERED or (mark & ITEM and self._one_of_many(each)) for mark, each in zip(marks, line)]
        if not (last & ITEM or any(alike)):
            return ""
        # A name at the end stays in the group: the loss of each row is not its step.
        count = len(line) - (last & NUMBERED > 0 or (last & ITEM > 0 and not many))
        group = "".join(_any(texts[at]) if alike[at] else texts[at] for at in range(count))
        return group if count == len(line) else group + container_of(texts[-1])

    def _one_of_many(self, node: int) -> bool:
        """Return whether *node* is the item of a dict with many keys, such as one for each user."""
        return self._held[self._nodes.parents[node]] > _MANY_KEYS

    def of_variable(self, line: "list[int]", owned: bool) -> str:
        """Return the group of a variable: the path of its owner if it is *owned*, else that of its container.

        The path is *line*. An item of a tuple keeps its number, unless the tuple is the outermost container.
        """
        nodes, group, outer = self._nodes, "", True
        for each in line:
            text, item = nodes.texts[each], nodes.marks[each] & ITEM
            if item and each == line[-1] and not owned:
                return group + container_of(text)
            several = item and self._held[nodes.parents[each]] > 1
            if several and (outer or nodes.views[each].container is not TUPLE):
                text = _any(text)
            outer = outer and not item
            group += text
        return group

    def is_owner(self, node: int) -> bool:
        """Return whether *node* holds variables, or is one."""
        return derives(self._nodes.kinds[node], self._owner)


def _any(text: str) -> str:
    """Return the piece of a path for any item of a container, where *text* is that of one of them."""
    return container_of(text) + "[*]"


def container_of(text: str) -> str:
    """Return what the piece of a path says of the container before the item: nothing but for a cache."""
    return text.partition("[")[0]


def write(found: Found, nodes: Nodes, ends: "dict[int, int]", owner: type) -> None:
    """Write the paths to *ends*, the nodes of what was found by its identity. *owner* is as in :class:`Search`."""
    groups = _Groups(nodes, ends.values(), owner)
    for item, node in ends.items():
        line = nodes.line(node)
        if nodes.marks[line[0]] & LIBRARY and len(line) <= _OWN:
            continue
        if len(line) > 1 and nodes.texts[node] == "._value" and groups.is_owner(line[-2]):
            del line[-1]  # of Keras's variable
        found.paths[item] = "".join(nodes.texts[each] for each in line)
        if not groups.is_owner(node):
            group, owned = groups.of_tensor(line), False
        else:
            whole = len(line)
            del line[next((at for at in range(whole) if groups.is_owner(line[at])), whole) + 1 :]
            group, owned = groups.of_variable(line, len(line) < whole), len(line) < whole
        if group:
            found.groups[item] = group
        among = next((each for each in line[:: -1 if owned else 1] if nodes.marks[each] & ITEM), None)
        if among is not None:
            found.items[item] = groups.place(among)
