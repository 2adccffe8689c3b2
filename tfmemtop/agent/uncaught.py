"""Finds the exception that ended the script. None of the script's code runs for that."""

import sys
from typing import Any, Optional

from .callsite import line_in
from .views import name_and_module

_TEXT, _LONG = 2000, 50_000  # characters
_OF_THE_PLACE = "Graph execution error", "Detected at node", "  File ", "<stack traces unavailable>"
_NO_ERRORS = SystemExit, KeyboardInterrupt
_arguments: Any = BaseException.__dict__["args"].__get__


def uncaught() -> "Optional[dict[str, Any]]":
    """Return the fields of the event ``script_error``; ``None`` if no exception has ended the script.

    Python keeps an exception in ``sys`` before it prints it. Notebooks and test runners keep there those that they
    have caught: in them, the outermost call of the traceback had a caller.
    """
    value: Any = getattr(sys, "last_value", None)
    trace: Any = getattr(sys, "last_traceback", None)
    kind: Any = type(value)
    if trace is None or not issubclass(kind, BaseException) or issubclass(kind, _NO_ERRORS):
        return None
    if trace.tb_frame.f_back is not None or hasattr(sys, "ps1"):
        return None
    line = line_in(trace)
    fields = {"kind": name_and_module(kind)[0], "message": _message(value)}
    return {**fields, "file": line.told, "line": line.number, "code": line.code}


def _message(value: BaseException) -> str:
    """Return the first line of the message: the first argument that is a text, or TensorFlow's own message.

    What TensorFlow writes of an error in a graph begins with lines about the place in the graph, which say nothing.
    """
    own = dict.get(object.__getattribute__(value, "__dict__"), "_message")  # TensorFlow's errors have no arguments
    text = next((each for each in (*_arguments(value), own) if type(each) is str and each), "")
    lines = [line for line in text[:_LONG].splitlines() if line.strip()]
    return next((line for line in lines if not line.startswith(_OF_THE_PLACE)), "".join(lines[:1])).strip()[:_TEXT]
