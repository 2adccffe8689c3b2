"""The settings of the next run, as the keys change them."""

import pytest

from tests import streams as s
from tests.streams import GIB, MIB
from tests.ui.test_dialog import Host, opened
from tfmemtop.experiments.session.next_run import NextRun
from tfmemtop.settings import Settings
from tfmemtop.ui.screens.questions import gpus_dialog


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


def test_the_gpus_with_the_most_free_memory_count_what_the_run_itself_holds_as_free() -> None:
    state = s.fold(
        [
            s.session(),
            s.run(pid=7),
            *(s.device(index) for index in range(3)),
            s.process(1.0, 7),
            s.device_reading(2.0, {7: 130 * GIB}, index=0),
            s.device_reading(2.0, {8: 30 * GIB}, index=1),
            s.device_reading(2.0, {8: 60 * GIB}, index=2),
        ]
    )
    upcoming = NextRun(("python", "a.py"), Settings())
    assert upcoming.with_gpus("free", state).settings.gpus == (0,)
    assert upcoming.with_gpus(" Free:2 ", state).settings.gpus == (0, 1)
    with pytest.raises(ValueError, match="whose free memory is known"):
        upcoming.with_gpus("free:4", state)


@pytest.mark.screens
async def test_the_dialog_offers_the_gpu_with_the_most_free_memory() -> None:
    state = s.fold(
        [
            s.session(),
            *(s.device(index) for index in range(2)),
            *(s.device_reading(2.0, {8: size * GIB}, index) for index, size in enumerate((30, 20))),
        ]
    )
    async with Host().run_test(size=(120, 36)) as pilot:
        dialog = gpus_dialog(state, NextRun(("python", "a.py"), Settings()))
        answers = await opened(pilot, dialog)
        shown = "\n".join(strip.text for strip in dialog._compositor.render_strips())
        assert "GPU 1, with the most free memory after this run: 119.4 GiB" in shown
        await pilot.press(*"free", "enter")
        assert [answer.settings.gpus for answer in answers if isinstance(answer, NextRun)] == [(1,)]
