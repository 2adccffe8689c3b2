"""No rule fires where nothing is wrong."""

from collections.abc import Hashable

import pytest

from tests.findings.situations import HEALTHY, found
from tests.ui.recorded import RECORDINGS
from tfmemtop.events import recording
from tfmemtop.findings.ending import MemoryReleasing, RunEnded
from tfmemtop.findings.notices import Noticed
from tfmemtop.findings.rules import findings
from tfmemtop.state import State, apply

SAID_ANYWAY = {(RunEnded,), (MemoryReleasing,), (Noticed, "nvml")}
"""Findings that are no complaints: how a run ended, and that this machine has no GPU."""


def test_a_healthy_run_is_left_in_peace() -> None:
    assert found(HEALTHY) == []


@pytest.mark.parametrize(
    ("name", "runs"),
    [("h200-settings", {2, 3, 5}), ("cpu-demo", {1}), ("h200-two-cards", {1}), ("h200-four-cards", {1})],
)
def test_recorded_healthy_runs_are_left_in_peace_at_every_moment(name: str, runs: set[int]) -> None:
    path = RECORDINGS / f"{name}.jsonl"
    state, last, told = State(), 0.0, set[Hashable]()
    for event in recording.read(path).events():
        apply(state, event)
        if event.t >= last + 1 and state.run and state.run.run in runs:
            last = event.t
            told |= {finding.kind for finding in findings(state)}
    assert told <= SAID_ANYWAY
