"""The state: all that is known now, computed by a pure fold over events, and views of it for the screen."""

from tfmemtop.state.fold import apply
from tfmemtop.state.model import State

__all__ = ["State", "apply"]
