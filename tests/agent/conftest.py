"""The fixtures of ``tests/hooked.py``."""

from tests.hooked import forks, imported, monitor, script

__all__ = ["forks", "imported", "monitor", "script"]
