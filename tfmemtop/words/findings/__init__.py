"""What is said of each kind of finding: text, explanation, lines of code.

Each module here says the findings of some rules; to add one, write a function and mark it ``@say.register``.
"""

from tfmemtop.words.findings import card, functions, leaks, memory, pool, run, settings, xla
from tfmemtop.words.findings.saying import Said, say

SPOKEN = (card, functions, leaks, memory, pool, run, settings, xla)
"""The modules that say findings; to import them is what registers them."""

__all__ = ["Said", "say"]
