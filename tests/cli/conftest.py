"""Fixtures that several files use."""

from tests.hooked import tensorflow_bare
from tests.starting import home, start

__all__ = ["home", "start", "tensorflow_bare"]
