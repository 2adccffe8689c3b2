"""A few rounds of the scenarios that ``tests/probe/stress.py`` plays hundreds of times."""

from pathlib import Path

from tests.forked import Fork
from tests.hooked import outcome
from tests.probe.layouts import compiled
from tests.probe.stress import SCENARIOS
from tfmemtop.agent.layouts import layout_of

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


# The table of layouts agrees with TensorFlow's own headers.


def test_the_row_of_this_tensorflow_is_what_the_compiler_says(tensorflow: tuple[Path, str]) -> None:
    folder, version = tensorflow
    assert layout_of(version) == compiled(folder)


def test_what_is_not_in_the_table_is_not_guessed() -> None:
    assert layout_of("2.22.0-rc0") is not None
    assert [layout_of(version) for version in ("2.15.1", "2.23.0", "2.2.0", "3.21.0", "unknown", "")] == [None] * 6
