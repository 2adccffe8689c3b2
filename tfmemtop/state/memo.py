"""A cache for views: a view that several panels need in one frame is computed once."""

from collections.abc import Callable
from typing import TypeVar

from tfmemtop.state.model import State

T = TypeVar("T")


def once_per_revision(view: Callable[[State], T]) -> Callable[[State], T]:
    """Return *view* with a cache of its last result, which is valid until the next event is applied to the state."""
    last: list[tuple[State, int, T]] = []

    def remembered(state: State) -> T:
        if last and last[0][0] is state and last[0][1] == state.revision:
            return last[0][2]
        answer = view(state)
        last[:] = [(state, state.revision, answer)]
        return answer

    remembered.__doc__ = view.__doc__
    remembered.__name__ = view.__name__
    return remembered
