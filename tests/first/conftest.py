"""The fixture of ``tests/starting.py``."""

from tests.starting import home

__all__ = ["home"]
