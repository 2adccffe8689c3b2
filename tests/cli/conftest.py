"""The fixtures of ``tests/starting.py``."""

from tests.starting import home, start

__all__ = ["home", "start"]
