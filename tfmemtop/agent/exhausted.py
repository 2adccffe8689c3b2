"""Notices that TensorFlow raises for want of memory."""

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .core import Agent

_ALLOCATION = ("oom when allocating", "out of memory", "failed to allocate")
"""TensorFlow raises RESOURCE_EXHAUSTED for full queues and quotas as well."""

_SAME_S = 1.0  # TensorFlow tries for 10 s before it fails: a second failure is never that soon


class Exhaustion:
    """Reports failed allocations, each once although TensorFlow may make several exceptions of it."""

    def __init__(self, agent: "Agent") -> None:
        self._agent = agent
        self._last = ("", 0.0)

    def notice(self, message: object) -> None:
        """An exception with *message* is being made."""
        text = message if type(message) is str else ""
        lower = text.lower()
        if not any(words in lower for words in _ALLOCATION):
            return
        now, (last, at) = time.monotonic(), self._last
        self._last = text, now
        if now - at < _SAME_S and (text in last or last in text):
            return
        self._agent.send("out_of_memory", message=text)
