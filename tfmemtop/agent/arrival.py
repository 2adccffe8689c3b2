"""Waits until TensorFlow's modules are complete, then patches them."""

import sys
from typing import TYPE_CHECKING, Any, Optional

from . import threads
from .core import Agent
from .patches import patch, patch_functions, patch_session, patch_variables

if TYPE_CHECKING:
    from types import ModuleType

CONTEXT = "tensorflow.python.eager.context"
ERRORS = "tensorflow.python.framework.errors_impl"
VARIABLES = "tensorflow.python.ops.resource_variable_ops"
SESSION = "tensorflow.python.client.session"
FUNCTIONS = "tensorflow.python.eager.polymorphic_function.polymorphic_function"


class Arrival:
    """A finder that finds nothing: at each import it looks whether the modules are there.

    No module is loaded differently for it, as a wrapped loader would do; TensorFlow imports hundreds
    more after these.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._once = threads.allocate_lock()
        self._then = [
            (threads.allocate_lock(), VARIABLES, "listening to variables", patch_variables),
            (threads.allocate_lock(), SESSION, "listening to sessions", patch_session),
            (threads.allocate_lock(), FUNCTIONS, "listening to functions", patch_functions),
        ]

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if not self._once.locked():
            context, errors = _complete(CONTEXT), _complete(ERRORS)
            if context is not None and errors is not None and self._once.acquire(False):
                self._agent.quietly("greeting", self._agent.tensorflow_is_here, context)
                self._agent.quietly("patching TensorFlow", patch, self._agent, context, errors)
        elif self._then:
            for step in self._then:
                once, awaited, doing, action = step
                module = _complete(awaited)
                if module is not None and once.acquire(False):
                    self._agent.quietly(doing, action, self._agent, module)
            self._then = [step for step in self._then if not step[0].locked()]
            if not self._then:
                return self._leave(name, path, target)
        return None

    def _leave(self, name: str, path: Any, target: Any) -> Any:
        """Leave ``sys.meta_path``, answering for the next finder, which the search under way will skip.

        Another thread's search would skip one too: then this finder stays, and does nothing.
        """
        finders = sys.meta_path
        if not threads.alone() or self not in finders:
            return None
        place = finders.index(self)
        following = getattr(finders[place + 1], "find_spec", None) if place + 1 < len(finders) else None
        if following is None:
            return None
        del finders[place]
        return following(name, path, target)


def _complete(name: str) -> "Optional[ModuleType]":
    module = sys.modules.get(name)
    if module is None or getattr(getattr(module, "__spec__", None), "_initializing", False):
        return None
    return module
