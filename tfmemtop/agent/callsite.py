"""Finds the line of the script's own code on a stack that also has TensorFlow's code."""

import _stat as stat
import os
import sys
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Optional

if TYPE_CHECKING:
    from types import FrameType, TracebackType

_CODE = 120  # characters

_OWN = __name__.split(".")[0]
_LIBRARIES = {"tensorflow", "keras", "tf_keras", _OWN, *getattr(sys, "stdlib_module_names", ())}
_SHELLS, _SHELL = "IPython.core.interactiveshell", "InteractiveShell"


class Line(NamedTuple):
    """A line of the script; ``"", 0`` where no code of the script is on the stack."""

    file: str
    number: int

    @property
    def told(self) -> str:
        """The file as it is named in events: a cell of a notebook by its number."""
        return name_in_events(self.file)

    @property
    def code(self) -> str:
        """The text of the line; empty if the file cannot be read."""
        lines = _typed(self.file) or _read(self.file)
        return lines[self.number - 1].strip()[:_CODE] if 0 < self.number <= len(lines) else ""

    def fields(self) -> "dict[str, Any]":
        """Return the line as the fields of an event."""
        return {"file": self.told, "line": self.number, "code": self.code}


def _typed(name: str) -> "list[str]":
    """Return the lines typed under *name*, which notebooks, IPython and the interpreter put into ``linecache``."""
    cache: Any = getattr(sys.modules.get("linecache"), "cache", None)
    entry = cache.get(name) if type(cache) is dict else None
    return list(entry[2]) if type(entry) is tuple and len(entry) == 4 else []


def _read(path: str) -> "list[str]":
    try:
        # A script that is typed or piped in is not read: that would wait for its text, and take it away from Python.
        if not stat.S_ISREG(os.stat(path).st_mode):
            return []
        with open(path, "rb") as file:
            lines = file.read().splitlines()
    except OSError as error:
        if error.errno is None:  # raised by a signal handler, not by the kernel
            raise
        return []
    return [line.decode(errors="backslashreplace") for line in lines]


def line_of(frame: "Optional[FrameType]") -> Line:
    """Return the innermost line, from *frame* outwards, that is neither a library's nor tfmemtop's."""
    while frame is not None:
        if not _of_library(frame):
            return Line(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return Line("", 0)


def line_in(trace: "Optional[TracebackType]", installed: "Callable[[str], bool]") -> Line:
    """Return the same line of a traceback; one of a file that is *installed* only if there is no other."""
    line = own = Line("", 0)
    while trace is not None:
        if not _of_library(trace.tb_frame):
            line = Line(trace.tb_frame.f_code.co_filename, trace.tb_lineno)
            own = own if installed(line.file) else line
        trace = trace.tb_next
    return own if own.file else line


def _of_library(frame: "FrameType") -> bool:
    generated = "/__autograph_generated_file" in frame.f_code.co_filename  # of what AutoGraph makes of a function
    return generated or _root(frame) in _LIBRARIES


def _root(frame: "FrameType") -> str:
    """Return the name of the package whose code runs in *frame*."""
    return str(frame.f_globals.get("__name__")).split(".")[0]


def callers_line() -> Line:
    """Return the line of the script that called TensorFlow, which called the agent."""
    return line_of(sys._getframe(1))


def received() -> bool:
    """Return whether the agent was called as an object that another process has sent is made here."""
    frame: Optional[FrameType] = sys._getframe(1)
    while frame is not None and (_root(frame) == _OWN or frame.f_code.co_name == "__init__"):
        frame = frame.f_back
    return frame is not None and _root(frame) == "multiprocessing"


def name_in_events(file: str) -> str:
    """Return the name of *file* for events: the cell's name if the file is a cell of a notebook, else *file* itself.

    IPython compiles cells as if they were files: ``/tmp/ipykernel_81/2738.py``. It keeps the number of each such file's
    cell, the one in ``In [7]``. Events name a cell as IPython itself names it where no debugger needs a file:
    ``<ipython-input-7-2738>``.
    """
    if "ipykernel" not in file:
        return file
    # Attributes are read from __dict__: a property would run code of IPython or of the script.
    shell = _part(_part(_part(sys.modules.get(_SHELLS), _SHELL), "_instance"), "compile")
    numbers = _part(shell, "_filename_map")
    number = numbers.get(file) if type(numbers) is dict else None
    if type(number) is not int:
        return file
    stem = file.rpartition("/")[2].removesuffix(".py")
    return f"<ipython-input-{number}-{stem}>"


def _part(whole: Any, name: str) -> Any:
    parts = getattr(whole, "__dict__", None)
    return None if parts is None else parts.get(name)
