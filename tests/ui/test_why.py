"""The findings on the screen: chosen, explained, copied, and their remedies pressed."""

import pytest
from textual.pilot import Pilot

from tests import streams as s
from tests.streams import GIB, MIB
from tests.ui.recorded import Recorded, source_of
from tests.ui.test_app import drawn, text_of
from tests.verdicts.situations import POOL_AT_ONCE, asked, begin, effective, reading
from tfmemtop import events
from tfmemtop.options import Outcome, UiOptions
from tfmemtop.ui.app import TfmemtopApp
from tfmemtop.ui.dialog import InputDialog
from tfmemtop.ui.why_screen import WhyScreen
from tfmemtop.verdicts import findings

STREAM: list[events.AnyEvent] = [
    *begin(),
    effective(False),
    reading(3.0, 33 * MIB, 908 * MIB, POOL_AT_ONCE),
    asked(
        "set_memory_growth", "GPU:0, True", "RuntimeError: Physical devices cannot be modified after being initialized"
    ),
]


def app(stream: list[events.AnyEvent], options: UiOptions | None = None) -> TfmemtopApp:
    return TfmemtopApp(Recorded(stream), options or UiOptions())


def chosen(shown: TfmemtopApp) -> str:
    screen = shown.screen
    assert isinstance(screen, WhyScreen) and screen.chosen is not None
    return screen.chosen.key


async def opened(pilot: Pilot[Outcome]) -> TfmemtopApp:
    await drawn(pilot)
    await pilot.press("W")
    return await drawn(pilot)


async def test_the_panel_says_how_to_learn_more() -> None:
    async with app(STREAM).run_test(size=(160, 48)) as pilot:
        assert "W explains" in text_of(await drawn(pilot))


@pytest.mark.parametrize(("gpus", "said"), [((0, 1), 2), (tuple(range(8)), 1), ((0, 2, 5), 1)])
async def test_what_holds_on_many_gpus_alike_is_said_once(gpus: tuple[int, ...], said: int) -> None:
    stream = begin(gpus=max(gpus) + 1)
    for logical, physical in enumerate(gpus):
        name = f"GPU:{logical}"
        stream.append(effective(False, name=name, uuid=f"GPU-{physical}"))
        stream.append(reading(3.0, (33 + logical) * MIB, 908 * MIB, POOL_AT_ONCE, name=name))
    async with app(stream).run_test(size=(160, 48)) as pilot:
        shown = await drawn(pilot)
        text = text_of(shown)
        assert text.count("growth is off, so TensorFlow took") == said
        if said == 1:
            names = "GPU 0 to 7" if len(gpus) == 8 else "GPU 0, 2, 5"
            assert f"{names} alike. GPU 0: growth is off" in text
            assert f"W: {len(gpus) - 1} more" in text
        await pilot.press("W")
        assert sum(finding.key == "whole-card" for finding in findings(shown.state)) == len(gpus)
        await pilot.press(*["down"] * (len(gpus) - 1))
        assert f"GPU {gpus[-1]}: growth is off" in text_of(await drawn(pilot))


async def test_the_chosen_finding_is_told_at_length_and_its_lines_are_copied() -> None:
    async with app(STREAM).run_test(size=(120, 40)) as pilot:
        shown = await opened(pilot)
        assert chosen(shown) == "asked-too-late"
        assert "settles growth, limits and visible devices in that moment" in " ".join(text_of(shown).split())
        await pilot.press("down")
        shown = await drawn(pilot)
        assert chosen(shown) == "whole-card" and "nvidia-smi then shows a full card" in " ".join(text_of(shown).split())
        await pilot.press("y")
        assert shown.clipboard.startswith("import tensorflow as tf\n")
        assert "    tf.config.experimental.set_memory_growth(gpu, True)\n" in shown.clipboard
        await pilot.press("up", "up", "down", "down", "down")
        assert chosen(shown) == "whole-card"


async def test_a_remedys_key_does_what_it_does_on_the_screen() -> None:
    async with app(STREAM).run_test(size=(120, 40)) as pilot:
        shown = await opened(pilot)
        await pilot.press("down", "G")
        shown = await drawn(pilot)
        assert len(shown.screen_stack) == 1 and "next: growth on" in text_of(shown)
        await pilot.press("W", "down", "L")
        await pilot.pause()
        assert isinstance((await drawn(pilot)).screen, InputDialog)


async def test_other_keys_and_those_that_may_not_steer_do_nothing() -> None:
    async with app(STREAM, UiOptions(readonly=True)).run_test(size=(120, 40)) as pilot:
        shown = await opened(pilot)
        await pilot.press("R", "A")
        assert isinstance(shown.screen, WhyScreen)
        await pilot.press("G")
        await pilot.pause()
        assert "next:" not in text_of(await drawn(pilot))
        assert not [command for command in source_of(shown).sent if not isinstance(command, events.MapWanted)]


async def test_the_choice_stays_with_its_finding() -> None:
    async with app(STREAM).run_test(size=(80, 24)) as pilot:
        shown = await opened(pilot)
        await pilot.press("down")
        assert chosen(shown) == "whole-card"
        out = events.OutOfMemory(t=4.0, pid=100, message="failed", requested=GIB)
        await source_of(shown).more.put([out])
        shown = await drawn(pilot)
        assert chosen(shown) == "whole-card"
        await pilot.press("escape")
        assert len(shown.screen_stack) == 1


async def test_without_findings_it_says_so() -> None:
    async with app([s.session(), s.run(), s.device()]).run_test(size=(80, 24)) as pilot:
        shown = await opened(pilot)
        assert "no finding holds" in text_of(shown)
        await pilot.press("y", "down", "q")
        assert len(shown.screen_stack) == 1
