"""Fixtures that several files use."""

from tests.engines import engines
from tests.hooked import tensorflow_bare

__all__ = ["engines", "tensorflow_bare"]
