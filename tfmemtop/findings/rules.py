"""All rules in one table, and the findings that they yield for a state."""

from collections.abc import Callable, Iterator

from tfmemtop.findings.attached import read_from_outside
from tfmemtop.findings.busy import full_but_idle
from tfmemtop.findings.devices import logical_devices_beyond_card, no_gpu_seen
from tfmemtop.findings.ending import how_it_ended
from tfmemtop.findings.finding import Finding, RuleFailed
from tfmemtop.findings.framework_memory import framework_failed
from tfmemtop.findings.frameworks import card_shared, jax_preallocated
from tfmemtop.findings.host_growth import host_growth
from tfmemtop.findings.judgement import judged_at_the_end
from tfmemtop.findings.leaks import leak
from tfmemtop.findings.notices import hook_absent, notices
from tfmemtop.findings.others import others_hold_the_card, two_reserve_everything
from tfmemtop.findings.out_of_memory import out_of_memory, running_out
from tfmemtop.findings.outside import held_beside, outside_the_pool
from tfmemtop.findings.pool import cached_but_idle, tight_limit, whole_card_reserved
from tfmemtop.findings.retracing import retracing
from tfmemtop.findings.settings import (
    asked_too_late,
    growth_differs,
    growth_dropped,
    growth_overridden,
    growth_word_ignored,
    refused,
)
from tfmemtop.findings.xla import nameless, report_missing
from tfmemtop.state import State
from tfmemtop.state.lookup import once_per_revision

Rule = Callable[[State], Iterator[Finding]]

RULES: tuple[Rule, ...] = (
    how_it_ended,
    out_of_memory,
    framework_failed,
    running_out,
    growth_differs,
    no_gpu_seen,
    hook_absent,
    read_from_outside,
    asked_too_late,
    growth_dropped,
    growth_overridden,
    growth_word_ignored,
    refused,
    leak,
    retracing,
    host_growth,
    card_shared,
    two_reserve_everything,
    others_hold_the_card,
    whole_card_reserved,
    jax_preallocated,
    full_but_idle,
    outside_the_pool,
    held_beside,
    logical_devices_beyond_card,
    tight_limit,
    cached_but_idle,
    nameless,
    report_missing,
    notices,
)


@once_per_revision
def findings(state: State) -> list[Finding]:
    """Return all findings that hold now, most serious first. Those of one severity are in the order of `RULES`."""
    found = [finding for rule in RULES for finding in follow_rule(rule, state)]
    return sorted([*judged_at_the_end(state, found), *found], key=lambda finding: finding.severity)


def follow_rule(rule: Rule, state: State) -> list[Finding]:
    """Return the findings of *rule*; if it raises, a :class:`RuleFailed`, so that the other rules still run."""
    try:
        return list(rule(state))
    except Exception as error:
        return [RuleFailed(rule.__name__, error)]


__all__ = ["RULES", "Finding", "findings", "follow_rule"]
