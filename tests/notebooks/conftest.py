"""The fixture of ``tests/notebook.py``."""

from tests.notebook import jupyter

__all__ = ["jupyter"]
