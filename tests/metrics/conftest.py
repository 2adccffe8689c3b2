"""Fixtures for real engines and programs, with folders of the test's own."""

from tests.commands.conftest import home
from tests.engine.conftest import engines

__all__ = ["engines", "home"]
