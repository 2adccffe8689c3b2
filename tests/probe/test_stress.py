"""A few rounds of the scenarios that ``tests/probe/stress.py`` plays hundreds of times."""

from pathlib import Path

from tests.forked import Fork
from tests.hooked import outcome
from tests.probe.stress import SCENARIOS

PLAY = """
import sys
sys.path.append(sys.argv.pop(1))
from tests.probe.stress import main
sys.exit(main())
"""


def test_no_awkward_moment_crashes_or_hangs_the_script(library: Path, forked_bare: Fork) -> None:
    root = str(Path(__file__).parents[2])
    scenarios = [name for name in SCENARIOS if name != "fails"]  # for Python the same end as in "ends"
    done = outcome(forked_bare(PLAY, root, "--rounds", "1", "--seconds", "0.2", *scenarios))
    assert done.code == 0, done.out + done.err
    assert len(done.out.splitlines()) == len(scenarios) == 10
