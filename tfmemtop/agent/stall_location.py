"""Where the script stands while TensorFlow tries, for up to ten seconds, to find room for an allocation."""

import sys
from typing import TYPE_CHECKING, Optional

from . import real_threads
from .callsite import Line, line_of
from .messenger import Messenger

if TYPE_CHECKING:
    from types import FrameType

_GENERATED = "tensorflow.python.ops.gen_"
_FALLBACK = "_eager_fallback"


def tell(messenger: Messenger) -> None:
    """Report the thread that is in an operation, or in a function of them: the main thread before others."""
    found = _in_tensorflow()
    if found is not None:
        operation, line = found
        messenger.send("waiting", operation=operation, file=line.file, line=line.number, code=line.code)


def _in_tensorflow() -> "Optional[tuple[Optional[str], Line]]":
    """The operation and the line of the script; keeps no frame, which would keep its locals."""
    own, frames = real_threads.get_ident(), sys._current_frames()
    try:
        for ident in sorted(frames, key=lambda each: each != real_threads.main):
            frame = frames[ident]
            if ident != own and _module(frame).startswith("tensorflow."):
                return _operation(frame), line_of(frame)
        return None
    finally:
        frames.clear()  # one is that of this call, which holds them all


def _operation(frame: "Optional[FrameType]") -> Optional[str]:
    """The name of the operation that *frame* runs eagerly; ``None`` in a ``tf.function``, which runs many.

    A generated function ``mat_mul`` runs ``MatMul``, which is among its constants.
    """
    while frame is not None and _module(frame).startswith("tensorflow."):
        if _module(frame).startswith(_GENERATED):
            name = frame.f_code.co_name
            if name.endswith(_FALLBACK):
                name = name[: -len(_FALLBACK)]
            plain = name.replace("_", "").lower()
            for constant in frame.f_code.co_consts:
                if isinstance(constant, str) and constant.lower() == plain:
                    return constant
            return name
        frame = frame.f_back
    return None


def _module(frame: "FrameType") -> str:
    return str(frame.f_globals.get("__name__"))
