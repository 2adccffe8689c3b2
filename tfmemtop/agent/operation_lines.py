"""Finds the lines of the script that made operations of its graphs, and the calls that led there.

TensorFlow keeps a traceback of each operation.

Only weak references are kept, to the graphs of functions and sessions. A look-up takes some tenths of a millisecond, so
few are made at a time.
"""

import os
from _weakref import ref
from time import thread_time
from typing import Any

from .callsite import Line, name_in_events
from .collector import Collector
from .messenger import Messenger
from .views import INSTALLED, file_of

AT_ONCE_S = 0.002
"""The thread time of one round of look-ups. After that the script's threads run first."""
PAUSE_S = 0.02

_GRAPHS = 512  # the newest graphs, which are searched
_WANTED = 1024
_SENT = 16  # lines of one message at most, which must fit a packet
_NAME, _PATH, _FUNCTION, _FRAME_PATH = 500, 1000, 60, 150  # characters
_FRAMES = 8  # innermost frames of the script that are sent with a line
_CALL = "PartitionedCall"


class OperationLines:
    """Looks up the lines that the engine requests. All but :meth:`graph_made` runs in the sampler's thread."""

    def __init__(self, messenger: Messenger, collector: Collector) -> None:
        self._messenger = messenger
        self._collector = collector
        self._graphs: list[Any] = []
        self.wanted: list[str] = []
        """The operations whose lines are still to be looked up."""
        self._library = os.__file__.rpartition("/")[0] + "/"

    def graph_made(self, graph: Any) -> None:
        """Note the new *graph* of a function or session, in which operations will be made."""
        graphs = self._graphs
        graphs.append(ref(graph))
        if len(graphs) > 2 * _GRAPHS:
            self._graphs = [reference for reference in graphs if reference() is not None][-_GRAPHS:]

    def want(self, operations: "list[Any]") -> None:
        """Note that the engine requests the lines of *operations*."""
        names = [name for name in operations if type(name) is str and name]
        self.wanted += [name for name in names if name not in self.wanted]
        del self.wanted[_WANTED:]

    def work(self) -> None:
        """Look up some of the lines, and send those that were found, a few in one message."""
        if not self.wanted:
            return
        began = thread_time()
        found: list[list[Any]] = []
        while self.wanted and len(found) < _SENT and thread_time() - began < AT_ONCE_S and self._collector.room():
            name = self.wanted.pop(0)
            operation = self._operation(name)
            stack = self._stack_of(operation)
            if stack:
                line = Line(stack[-1].filename, stack[-1].lineno)
                # A text each: a list each would be too many containers, see collector.py.
                told = [
                    f"{of.name[:_FUNCTION]} {name_in_events(of.filename)[-_FRAME_PATH:]}:{of.lineno}" for of in stack
                ]
                graph = str(getattr(operation.graph, "name", ""))[:_FUNCTION]
                found.append([name[:_NAME], line.told[-_PATH:], line.number, line.code, told, graph])
        if found:
            self._messenger.send("operation_lines", lines=found)

    def _stack_of(self, operation: Any) -> "list[Any]":
        """Return the innermost frames of the script on the stack on which *operation* was made, the innermost last.

        Each has ``filename``, ``lineno`` and ``name``, which is that of the function.
        """
        frames = operation.traceback if operation is not None else ()
        return [frame for frame in frames if self._is_scripts(frame.filename)][-_FRAMES:]

    def _operation(self, name: str) -> Any:
        """Return the operation of this *name* in the newest graph that has one; ``None`` if no graph has.

        If no graph has the whole name, the function calls at its beginning are left out, one after the other.
        """
        while True:
            for reference in reversed(self._graphs[-_GRAPHS:]):
                graph = reference()
                if graph is not None:
                    try:
                        return graph._get_operation_by_name(name)
                    except (KeyError, ValueError):
                        continue  # the operation is in another graph
            call, _, rest = name.partition("/")
            if _CALL not in call or not rest:
                return None
            name = rest

    def _is_scripts(self, file: str) -> bool:
        if file.startswith(("<tfmemtop", "<frozen", *_folders())):
            return False
        return not file.startswith(self._library) or "-packages/" in file


def _folders() -> "tuple[str, ...]":
    """Return the folders of TensorFlow and Keras, wherever they were installed."""
    files = map(file_of, INSTALLED)
    return tuple(file.rpartition("/")[0] + "/" for file in files if type(file) is str)
