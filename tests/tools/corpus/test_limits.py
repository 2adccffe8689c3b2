"""Suggested limits hold: scripts run again under the limit that is suggested after a first run.

``python -m tests.tools.corpus.limits`` tries all scripts. It runs those that allocate randomly several times.
"""

from pathlib import Path

import pytest

from tests.tools.corpus.limits import attempt


@pytest.mark.parametrize("name", ["fragments", pytest.param("brim", marks=pytest.mark.whole)])
def test_a_script_ends_well_under_the_limit_that_is_suggested(name: str, tmp_path: Path) -> None:
    held = attempt(name, tmp_path)
    assert held.basis in ("pool_reached", "replayed") and held.suggested is not None
    assert held.peak <= (held.suggested if held.basis == "replayed" else held.pool) <= held.suggested
    assert held.holds and held.failed == 0
