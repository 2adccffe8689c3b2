"""What the state means, in plain words: small pure rules, state in, findings out."""

from collections.abc import Callable, Iterator

from tfmemtop.state import State
from tfmemtop.verdicts.ending import how_it_ended
from tfmemtop.verdicts.finding import Finding
from tfmemtop.verdicts.memory import out_of_memory
from tfmemtop.verdicts.watching import hooked_out, notices, script_settings_failed

RULES: tuple[Callable[[State], Iterator[Finding]], ...] = (
    how_it_ended,
    out_of_memory,
    hooked_out,
    script_settings_failed,
    notices,
)

_ORDER = {"error": 0, "warning": 1, "info": 2}


def findings(state: State) -> list[Finding]:
    """All that holds now, most serious first; rules of one level in their order above."""
    found = [finding for rule in RULES for finding in rule(state)]
    return sorted(found, key=lambda finding: _ORDER[finding.level])


__all__ = ["Finding", "findings"]
