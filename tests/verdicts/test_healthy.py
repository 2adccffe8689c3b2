"""No rule fires where nothing is wrong."""

import pytest

from tests.ui.recorded import RECORDINGS
from tests.verdicts.situations import HEALTHY, found
from tfmemtop import recording
from tfmemtop.state import State, apply
from tfmemtop.verdicts import findings

SAID_ANYWAY = {"ended", "releasing", "notice-nvml"}
"""How a run ended, and that this machine has no GPU, are no complaints."""


def test_a_healthy_run_is_left_in_peace() -> None:
    assert found(HEALTHY) == {}


@pytest.mark.parametrize(
    ("name", "runs"),
    [("h200-settings", {2, 3, 5}), ("cpu-demo", {1}), ("h200-two-cards", {1}), ("h200-four-cards", {1})],
)
def test_recorded_healthy_runs_are_left_in_peace_at_every_moment(name: str, runs: set[int]) -> None:
    path = RECORDINGS / f"{name}.jsonl"
    state, last, told = State(), 0.0, set[str]()
    for event in recording.read(path).events():
        apply(state, event)
        if event.t >= last + 1 and state.run and state.run.run in runs:
            last = event.t
            told |= {finding.key for finding in findings(state)}
    assert told <= SAID_ANYWAY
