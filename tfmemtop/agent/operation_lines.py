"""The lines of the script that made operations of its graphs, by what TensorFlow keeps of where each was made.

It keeps weak references only, to the graphs of functions and sessions. A look-up takes some tenths of a millisecond, so
few are made at a time.
"""

import os
import sys
from _weakref import ref
from time import thread_time
from typing import TYPE_CHECKING, Any, Optional

from .callsite import Line
from .gc_guard import Collector
from .messenger import Messenger

if TYPE_CHECKING:
    pass

AT_ONCE_S = 0.002
"""After so long the script's threads go first again."""
PAUSE_S = 0.02

_GRAPHS = 512  # the newest, which are looked through
_WANTED = 1024
_SENT = 16  # lines of one message, which must fit a packet
_NAME, _PATH = 500, 1000  # characters
_CALL = "PartitionedCall"
_LIBRARIES = ("/tensorflow/", "/keras/", "/tf_keras/")


class OperationLines:
    """Looks up what the engine asks for. All but :meth:`graph_made` runs in the sampler's thread."""

    def __init__(self, messenger: Messenger, collector: Collector) -> None:
        self._messenger = messenger
        self._collector = collector
        self._graphs: list[Any] = []
        self._wanted: list[str] = []
        self._found: list[list[Any]] = []
        self._library = os.__file__.rpartition("/")[0] + "/"

    def graph_made(self, graph: Any) -> None:
        """A graph of a function or session has been made; operations will come."""
        graphs = self._graphs
        graphs.append(ref(graph))
        if len(graphs) > 2 * _GRAPHS:
            self._graphs = [reference for reference in graphs if reference() is not None][-_GRAPHS:]

    def want(self, operations: "list[Any]") -> None:
        """The engine asks for the lines of *operations*."""
        names = [name for name in operations if type(name) is str and name]
        self._wanted += [name for name in names if name not in self._wanted]
        del self._wanted[_WANTED:]

    @property
    def waiting(self) -> bool:
        """Whether there is more to look up."""
        return bool(self._wanted)

    def work(self) -> None:
        """Look up some, and send what was found of all, a few at a time."""
        if not self._wanted:
            return
        self._collector.off(much=True)
        began = thread_time()
        while self._wanted and thread_time() - began < AT_ONCE_S:
            operation = self._wanted.pop(0)
            line = self._line_of(operation)
            if line is not None:
                self._found.append([operation[:_NAME], line.told[-_PATH:], line.number, line.code])
        if self._found and (not self._wanted or len(self._found) >= _SENT):
            for first in range(0, len(self._found), _SENT):
                self._messenger.send("operation_lines", lines=self._found[first : first + _SENT])
            self._found = []

    def _line_of(self, name: str) -> Optional[Line]:
        """The innermost line of the script on the way to where the operation was made."""
        operation = self._operation(name)
        line = None
        for frame in operation.traceback if operation is not None else ():
            file = frame.filename
            if self._is_scripts(file):
                line = Line(file, frame.lineno)
        return line

    def _operation(self, name: str) -> Any:
        """The operation in the newest graph that has one of this *name*, less the calls by which its function runs."""
        while True:
            for reference in reversed(self._graphs[-_GRAPHS:]):
                graph = reference()
                if graph is not None:
                    try:
                        return graph._get_operation_by_name(name)
                    except (KeyError, ValueError):
                        continue  # it is another graph's
            call, _, rest = name.partition("/")
            if _CALL not in call or not rest:
                return None
            name = rest

    def _is_scripts(self, file: str) -> bool:
        if file.startswith("<tfmemtop") or file.startswith("<frozen"):
            return False
        if file.startswith(self._library) and "-packages/" not in file:
            return False
        _, packages, inner = file.rpartition("-packages")
        return not (packages and inner.startswith(_LIBRARIES)) and not file.startswith(_folders())


def _folders() -> "tuple[str, ...]":
    """Where TensorFlow and Keras are, wherever they were installed."""
    found = []
    for name in ("tensorflow", "keras", "tf_keras"):
        file = getattr(sys.modules.get(name), "__file__", None)
        if type(file) is str:
            found.append(file.rpartition("/")[0] + "/")
    return tuple(found)
