"""Where memory runs out, and what ended the script. None of the script's code runs for that."""

import sys
from typing import TYPE_CHECKING, Any, Optional

from . import real_threads
from .callsite import Line, line_in, line_of
from .messenger import Messenger
from .views import ATTRIBUTES, Classes, module_of, name_and_module

if TYPE_CHECKING:
    from types import FrameType

_ALLOCATION = (
    *("oom when allocating", "out of memory", "failed to allocate"),
    "dst tensor is not initialized",  # no room on the device for a copy from the host
    "status_alloc_failed",  # of cuDNN, cuBLAS, cuSOLVER and cuFFT
    "no blas for stream",  # cuBLAS and cuDNN find no memory on the card for themselves
    *("dnn library initialization failed", "status_not_initialized"),
)
"""Words in the message of a failed allocation. The class of the error does not tell: RESOURCE_EXHAUSTED is raised for
full queues and quotas too, and some failed allocations are an InternalError or an UnknownError."""

_TEXT, _LONG = 2000, 50_000  # characters
_OF_THE_PLACE = "Graph execution", "Detected at", "Node: ", "Exception enc", "in user code:", "  ", "<stack traces"
_MESSAGES = "_message", "message"
"""Attributes in which errors of TensorFlow's and other libraries' have their message, where no argument is one."""
_NO_ERRORS = SystemExit, KeyboardInterrupt
_arguments: Any = BaseException.__dict__["args"].__get__
_file: Any = OSError.__dict__["filename"].__get__

_GENERATED = "tensorflow.python.ops.gen_"
_FALLBACK = "_eager_fallback"


def is_exhaustion(text: str) -> bool:
    """Return whether *text*, an error's message, is of a failed allocation."""
    lower = text.lower()
    return any(words in lower for words in _ALLOCATION)


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
    classes = Classes()
    line = line_in(trace, classes.of_library)
    return {"kind": name_and_module(kind)[0], "message": _message(value, classes), **line.fields()}


def _message(value: BaseException, classes: Classes) -> str:
    """Return the first line of the message: the first argument or, of a library's error, attribute that is one.

    What TensorFlow and Keras write before it is about the place. If all that follows is indented, the last line counts.
    """
    texts = *_arguments(value), *_library_messages(value, classes)
    text = next((each for each in texts if type(each) is str and each), "")
    lines = [line for line in text[:_LONG].splitlines() if line.strip()]
    first = next((line for line in lines if not line.startswith(_OF_THE_PLACE)), "".join(lines[-1:])).strip()
    file = _file(value) if issubclass(type(value), OSError) else None
    return (f"{first}: {file}" if type(file) is str else first)[:_TEXT]


def _library_messages(value: BaseException, classes: Classes) -> "list[Any]":
    """Return what may be the message of a library's error, in its attributes."""
    if not classes.is_librarys(module_of(type(value))) or ATTRIBUTES not in classes.views(type(value)):
        return []
    own = object.__getattribute__(value, "__dict__")
    return [dict.get(own, name) for name in _MESSAGES]


def tell_waiting(messenger: Messenger) -> None:
    """Report where the script is while TensorFlow tries, for up to ten seconds, to find room for an allocation.

    This is a thread that runs an operation, or a ``tf.function``: the main thread before others.
    """
    found = _in_tensorflow()
    if found is not None:
        operation, line, at_once = found
        messenger.send("waiting", operation=operation, at_once=at_once, **line.fields())


def _in_tensorflow() -> "Optional[tuple[Optional[str], Line, int]]":
    """Return the operation, the line of the script, and how many threads run that line.

    No frame is kept, as it would keep its locals.
    """
    own, frames = real_threads.get_ident(), sys._current_frames()
    try:
        threads = [ident for ident in frames if ident != own and _module(frames[ident]).startswith("tensorflow.")]
        threads.sort(key=lambda each: each != real_threads.main)
        lines = [line_of(frames[ident]) for ident in threads]
        return (_operation(frames[threads[0]]), lines[0], lines.count(lines[0])) if lines else None
    finally:
        frames.clear()  # one of them is the frame of this call, which holds them all


def _operation(frame: "Optional[FrameType]") -> Optional[str]:
    """Return the name of the operation that *frame* runs eagerly; ``None`` in a ``tf.function``, which runs many.

    The generated function ``mat_mul`` runs ``MatMul``; that name is among the function's constants.
    """
    while frame is not None and _module(frame).startswith("tensorflow."):
        if _module(frame).startswith(_GENERATED):
            name = frame.f_code.co_name.removesuffix(_FALLBACK)
            plain = name.replace("_", "").lower()
            texts = [each for each in frame.f_code.co_consts if isinstance(each, str)]
            return next((text for text in texts if text.lower() == plain), name)
        frame = frame.f_back
    return None


def _module(frame: "FrameType") -> str:
    return str(frame.f_globals.get("__name__"))
