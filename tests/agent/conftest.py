"""The fixtures of ``tests/hooked.py``."""

from tests.hooked import forks, monitor, script, tensorflow_bare, tensorflow_hooked

__all__ = ["forks", "monitor", "script", "tensorflow_bare", "tensorflow_hooked"]
