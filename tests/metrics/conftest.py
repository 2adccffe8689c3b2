"""Fixtures for real engines and programs, with folders of the test's own."""

from tests.engines import engines
from tests.starting import home

__all__ = ["engines", "home"]
