"""Where the ``fold*`` modules register their handlers, one for each class of event."""

from collections.abc import Callable
from typing import Any, TypeVar

from tfmemtop import events
from tfmemtop.state.model import State

E = TypeVar("E", bound=events.Event)
HANDLERS: dict[type[events.Event], Callable[[State, Any], None]] = {}


def folds(kind: type[E]) -> Callable[[Callable[[State, E], None]], Callable[[State, E], None]]:
    """Make a function the handler of a class of events: it stores each event of the class in the state."""

    def register(handler: Callable[[State, E], None]) -> Callable[[State, E], None]:
        HANDLERS[kind] = handler
        return handler

    return register
