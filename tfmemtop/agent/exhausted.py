"""Notices that TensorFlow raises an error because memory ran out."""

import time

from .messenger import Messenger

_ALLOCATION = (
    "oom when allocating",
    "out of memory",
    "failed to allocate",
    "dst tensor is not initialized",  # no room on the device for a copy from the host
    "status_alloc_failed",  # of cuDNN, cuBLAS, cuSOLVER and cuFFT
    "no blas for stream",  # cuBLAS and cuDNN find no memory on the card for themselves
    "dnn library initialization failed",
    "status_not_initialized",
)
"""Words in the message of a failed allocation. The class of the error does not tell: RESOURCE_EXHAUSTED is raised for
full queues and quotas too, and some failed allocations are an InternalError or an UnknownError."""

_SAME_S = 1.0  # TensorFlow tries for 10 s before it fails: a second failure is never that soon


class Exhaustion:
    """Reports each failed allocation once, although TensorFlow may make several exceptions for it."""

    def __init__(self, messenger: Messenger) -> None:
        self._messenger = messenger
        self._last = ("", 0.0)

    def notice(self, message: object) -> None:
        """Report the failure in *message*, with which TensorFlow is making an exception, if it is of an allocation."""
        text = message if type(message) is str else ""
        lower = text.lower()
        if not any(words in lower for words in _ALLOCATION):
            return
        now, (last, at) = time.monotonic(), self._last
        self._last = text, now
        if now - at < _SAME_S and (text in last or last in text):
            return
        self._messenger.send("out_of_memory", message=text)
