"""The rules. Each file in this folder has the findings of one subject: condition, sentence and remedies.

All files in this folder are loaded. A function with ``@rule`` is a rule, and needs to be listed nowhere else.
"""

from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TypeVar

from tfmemtop.findings.finding import Finding, RuleFailed
from tfmemtop.state import State

Rule = Callable[[State], Iterator[Finding]]
R = TypeVar("R", bound=Rule)

_PLACES: dict[Rule, int] = {}


def rule(place: int) -> Callable[[R], R]:
    """Mark a function as a rule. Of equally serious findings, those of the rule with the lowest *place* come first."""

    def mark(function: R) -> R:
        _PLACES[function] = place
        return function

    return mark


@cache
def rules() -> list[Rule]:
    """Return all rules, in the order of their places."""
    for module in iter_modules(__path__, f"{__name__}."):
        import_module(module.name)
    return sorted(_PLACES, key=_PLACES.__getitem__)


def follow_rule(rule: Rule, state: State) -> list[Finding]:
    """Return the findings of *rule*; if it raises, a :class:`RuleFailed`, so that the other rules still run."""
    try:
        return list(rule(state))
    except Exception as error:
        return [RuleFailed(rule.__name__, error)]
