"""What the state means, in plain words: small pure rules, state in, findings out."""

from collections.abc import Callable, Iterator

from tfmemtop.failure import describe
from tfmemtop.state import State
from tfmemtop.state.memo import once_per_revision
from tfmemtop.verdicts.busy import full_but_idle
from tfmemtop.verdicts.devices import logical_devices_beyond_card, no_gpu_seen
from tfmemtop.verdicts.ending import how_it_ended
from tfmemtop.verdicts.finding import Finding
from tfmemtop.verdicts.leaks import leak
from tfmemtop.verdicts.limits import limit_and_peak
from tfmemtop.verdicts.memory import crashed_when_full, out_of_memory, running_out
from tfmemtop.verdicts.others import others_hold_the_card, two_reserve_everything
from tfmemtop.verdicts.outside import outside_the_pool
from tfmemtop.verdicts.pool import cached_but_idle, fragmented, grown_beyond_need, whole_card_reserved
from tfmemtop.verdicts.retracing import retracing
from tfmemtop.verdicts.settings import (
    asked_too_late,
    growth_differs,
    growth_dropped,
    growth_overridden,
    growth_word_ignored,
    refused,
)
from tfmemtop.verdicts.watching import hooked_out, notices

Rule = Callable[[State], Iterator[Finding]]

RULES: tuple[Rule, ...] = (
    how_it_ended,
    out_of_memory,
    crashed_when_full,
    running_out,
    growth_differs,
    no_gpu_seen,
    hooked_out,
    asked_too_late,
    growth_dropped,
    growth_overridden,
    growth_word_ignored,
    refused,
    leak,
    retracing,
    two_reserve_everything,
    others_hold_the_card,
    whole_card_reserved,
    full_but_idle,
    fragmented,
    outside_the_pool,
    logical_devices_beyond_card,
    limit_and_peak,
    cached_but_idle,
    grown_beyond_need,
    notices,
)

_ORDER = {"error": 0, "warning": 1, "info": 2}


@once_per_revision
def findings(state: State) -> list[Finding]:
    """All that holds now, most serious first; rules of one level in their order above."""
    found = [finding for rule in RULES for finding in follow_rule(rule, state)]
    return sorted(found, key=lambda finding: _ORDER[finding.level])


def follow_rule(rule: Rule, state: State) -> list[Finding]:
    """What *rule* finds; if it fails, a finding that says so, while the others are followed."""
    try:
        return list(rule(state))
    except Exception as error:
        text = f"One of tfmemtop's own rules, {rule.__name__}, has failed: {describe(error)}."
        return [Finding("warning", text, key=f"failed-{rule.__name__}")]


__all__ = ["RULES", "Finding", "findings", "follow_rule"]
