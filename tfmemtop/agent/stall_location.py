"""Where the script stands while TensorFlow tries, for up to ten seconds, to find room for an allocation."""

import sys
from typing import TYPE_CHECKING, Any, Optional

from . import real_threads
from .asked import output
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
        operation, line, thread = found
        # With several threads in TensorFlow it may be another that waits.
        known = None if operation is None or thread is None else output(thread, operation, _is_generated)
        messenger.send(
            "waiting",
            operation=operation,
            file=line.told,
            line=line.number,
            code=line.code,
            requested=None if known is None else known.size,
            shape=None if known is None else known.shape,
            dtype=None if known is None else known.dtype,
        )


def _in_tensorflow() -> "Optional[tuple[Optional[str], Line, Optional[int]]]":
    """The operation, the line of the script, and the thread if it is the only one there.

    Keeps no frame, which would keep its locals.
    """
    own, frames = real_threads.get_ident(), sys._current_frames()
    try:
        threads = [ident for ident in frames if ident != own and _module(frames[ident]).startswith("tensorflow.")]
        threads.sort(key=lambda each: each != real_threads.main)
        for ident in threads:
            frame = frames[ident]
            return _operation(frame), line_of(frame), ident if len(threads) == 1 else None
        return None
    finally:
        frames.clear()  # one is that of this call, which holds them all


def _is_generated(code: Any) -> bool:
    return "/tensorflow/python/ops/gen_" in code.co_filename


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
