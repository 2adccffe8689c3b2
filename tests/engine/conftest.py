"""The fixture of ``tests/engines.py``."""

from tests.engines import engines

__all__ = ["engines"]
