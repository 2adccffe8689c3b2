"""Fixtures: the TensorFlow that the scripts use."""

from tests.hooked import tensorflow

__all__ = ["tensorflow"]
