"""The text of each kind of finding: headline, explanation, lines of code.

Each module here has the texts for the findings of some rules. To add one, write a function and mark it with
``@say.register``.
"""

from tfmemtop.words.findings import card, functions, leaks, memory, pool, run, settings, xla
from tfmemtop.words.findings.saying import Said, say

SPOKEN = (card, functions, leaks, memory, pool, run, settings, xla)
"""The modules with the texts of findings. Importing them registers the texts."""

__all__ = ["Said", "say"]
