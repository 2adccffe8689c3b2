"""The settings of the next run, as the keys change them."""

import pytest

from tests import streams as s
from tests.streams import MIB
from tfmemtop.experiments.session.next_run import NextRun
from tfmemtop.settings import Settings


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (Settings(cpu_pool=400 * MIB), Settings(cpu_pool=200 * MIB)),
        (Settings(memory_limit=400 * MIB), Settings(memory_limit=200 * MIB)),
    ],
)
def test_without_a_gpu_a_new_limit_replaces_that_of_the_command_line(before: Settings, after: Settings) -> None:
    """A kernelspec can have either option. ``compare`` shows both runs of a kernel with the same one."""
    state = s.fold([s.session()])
    changed = NextRun(("python", "a.py"), before).with_limit("200M", state)
    assert changed.settings == after
    assert changed.with_limit("", state).settings == Settings()
