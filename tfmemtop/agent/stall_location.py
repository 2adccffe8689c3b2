"""Finds where the script is while TensorFlow tries, for up to ten seconds, to find room for an allocation."""

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
    """Report where a thread is that runs an operation, or a ``tf.function``: the main thread before others."""
    found = _in_tensorflow()
    if found is not None:
        operation, line = found
        messenger.send("waiting", operation=operation, file=line.told, line=line.number, code=line.code)


def _in_tensorflow() -> "Optional[tuple[Optional[str], Line]]":
    """Return the operation and the line of the script. No frame is kept, as it would keep its locals."""
    own, frames = real_threads.get_ident(), sys._current_frames()
    try:
        threads = [ident for ident in frames if ident != own and _module(frames[ident]).startswith("tensorflow.")]
        threads.sort(key=lambda each: each != real_threads.main)
        for ident in threads:
            frame = frames[ident]
            return _operation(frame), line_of(frame)
        return None
    finally:
        frames.clear()  # one of them is the frame of this call, which holds them all


def _operation(frame: "Optional[FrameType]") -> Optional[str]:
    """Return the name of the operation that *frame* runs eagerly; ``None`` in a ``tf.function``, which runs many.

    The generated function ``mat_mul`` runs ``MatMul``; that name is among the function's constants.
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
