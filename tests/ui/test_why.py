"""The findings on the screen: the user chooses, opens and copies them, and presses the keys of their remedies."""

import signal

import pytest
from textual.pilot import Pilot

from tests import streams as s
from tests.findings.situations import POOL_AT_ONCE, asked_growth, begin, effective, reading
from tests.findings.test_crashes import waiting
from tests.streams import GIB, MIB
from tests.ui.shown import app, drawn, rows, running, source_of, text_of
from tfmemtop import events
from tfmemtop.findings.finding import Finding
from tfmemtop.findings.judgement import findings
from tfmemtop.findings.remedy import Action
from tfmemtop.findings.rules.pool import WholeCard
from tfmemtop.findings.rules.settings import AskedTooLate
from tfmemtop.ui import ScreenOutcome, UiOptions
from tfmemtop.ui.app import TfmemtopApp
from tfmemtop.ui.draw.lines import width_of
from tfmemtop.ui.draw.palette import KEY
from tfmemtop.ui.panels.why_panel import WhyPanel, remedy_lines
from tfmemtop.ui.screens.choice_dialog import InputDialog
from tfmemtop.ui.screens.why_screen import WhyScreen

STREAM: list[events.Event] = [
    *begin(),
    effective(False),
    reading(3.0, 33 * MIB, 908 * MIB, POOL_AT_ONCE),
    asked_growth(error="RuntimeError: Physical devices cannot be modified after being initialized"),
]


def chosen(shown: TfmemtopApp) -> type[Finding]:
    screen = shown.screen
    assert isinstance(screen, WhyScreen) and screen.chosen is not None
    return type(screen.chosen)


async def opened(pilot: Pilot[ScreenOutcome]) -> TfmemtopApp:
    await drawn(pilot)
    await pilot.press("W")
    return await drawn(pilot)


@pytest.mark.parametrize(("gpus", "said"), [((0, 1), 2), ((0, 2, 5), 1)])
async def test_what_holds_on_many_gpus_alike_is_said_once(gpus: tuple[int, ...], said: int) -> None:
    stream = begin(gpus=max(gpus) + 1)
    for logical, physical in enumerate(gpus):
        name = f"GPU:{logical}"
        stream.append(effective(False, name=name, uuid=f"GPU-{physical}"))
        stream.append(reading(3.0, (33 + logical) * MIB, 908 * MIB, POOL_AT_ONCE, name=name))
    async with running(app(stream)) as (pilot, shown):
        text = text_of(shown)
        assert text.count("growth is off, so TensorFlow took") == said
        if said == 1:
            assert "GPUs 0, 2, 5 alike. GPU 0: growth is off" in text
            assert f"W: {len(gpus) - 1} more" in text
        await pilot.press("W")
        assert sum(isinstance(finding, WholeCard) for finding in findings(shown.state)) == len(gpus)
        await pilot.press(*["down"] * (len(gpus) - 1))
        assert f"GPU {gpus[-1]}: growth is off" in text_of(await drawn(pilot))


async def test_the_chosen_finding_is_told_at_length_and_its_lines_are_copied() -> None:
    async with app(STREAM).run_test(size=(120, 40)) as pilot:
        shown = await opened(pilot)
        assert chosen(shown) is AskedTooLate
        assert "At that moment it fixes growth, limits and visible devices" in " ".join(text_of(shown).split())
        await pilot.press("down")
        shown = await drawn(pilot)
        assert chosen(shown) is WholeCard and "nvidia-smi then" in " ".join(text_of(shown).split())
        await pilot.press("y")
        assert shown.clipboard.startswith("import tensorflow as tf\n")
        assert "    tf.config.experimental.set_memory_growth(gpu, True)\n" in shown.clipboard
        await pilot.press("up", "up", "down", "down", "down")
        assert chosen(shown) is WholeCard


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
        assert chosen(shown) is WholeCard
        out = events.OutOfMemory(t=4.0, pid=100, message="failed", requested=GIB)
        await source_of(shown).more.put([out])
        shown = await drawn(pilot)
        assert chosen(shown) is WholeCard
        await pilot.press("escape")
        assert len(shown.screen_stack) == 1


async def test_without_findings_it_says_so() -> None:
    async with app([s.session(), s.run(), s.device()]).run_test(size=(80, 24)) as pilot:
        shown = await opened(pilot)
        assert "No findings right now." in text_of(shown)
        await pilot.press("y", "down", "q")
        assert len(shown.screen_stack) == 1


@pytest.mark.parametrize("width", [10, 40])
def test_remedies_are_cut_to_the_width_and_their_keys_stand_out(width: int) -> None:
    remedies = (Action.SET_LIMIT, Action.FIND_LIMIT, Action.GROWTH_ON)
    lines = remedy_lines(remedies, width)
    assert all(width_of(line) <= width for line in lines)
    keys = [segment.text for line in lines for segment in line if segment.style == KEY]
    assert keys == ["[L]", "[F]", "[G]"]
    text = "; ".join(rows(lines))
    if width == 40:
        assert text == "[L] set a limit; [F] find the smallest limit that works; [G] turn growth on"
        assert len(lines) == 3


def test_a_remedy_longer_than_a_line_is_told_to_its_end() -> None:
    lines = remedy_lines((Action.USE_CUDA_ALLOCATOR, Action.KEEP_ARRAYS), 30, whole=True)
    told = rows(lines)
    assert told[:2] == ["[A] use cuda_malloc_async,", "    which joins free chunks"]
    second = "keep fewer, or NumPy arrays (tensor.numpy()): bound the list, queue or cache that keeps them"
    assert " ".join(map(str.strip, told[2:])) == second
    assert not told[2].startswith(" ") and told[3].startswith("  "), "the indent shows where it begins"


def crashed() -> list[events.Event]:
    """Return the events of a crash with a full CPU pool, on a machine without an NVIDIA driver."""
    no_driver = events.Notice(t=0.1, key="nvml", level=events.Level.INFO, kind=events.NoticeKind.NO_DRIVER)
    end = events.RunEnd(t=16.0, run=1, exit_code=None, signal=signal.SIGSEGV)
    return sorted([*waiting(10), no_driver, end], key=lambda event: event.t)


@pytest.mark.parametrize("size", [(160, 48), (60, 20)])
async def test_the_cause_of_a_crash_comes_first(size: tuple[int, int]) -> None:
    async with app(crashed()).run_test(size=size) as pilot:
        text = " ".join(text_of(await drawn(pilot)).split())
        why = text[text.index(" Why ") :]
        cause = "TensorFlow's pool was full when the script crashed."
        assert why.index(cause) < why.index("Run 1 ended by SIGSEGV") if "Run 1 ended" in why else cause in why
        assert text.count("No NVIDIA driver here") <= 1
        if "No NVIDIA driver here" in why and "Run 1 ended" in why:
            assert why.index("Run 1 ended by SIGSEGV") < why.index("No NVIDIA driver here")


async def test_what_does_not_fit_gives_up_its_figures_first() -> None:
    async with app(STREAM).run_test(size=(80, 40)) as pilot:
        panel = (await drawn(pilot)).screen.query_one(WhyPanel)
        for height in range(2, 14):
            lines = rows(panel.build(78, height))
            text = " ".join(" ".join(lines).split())
            assert "train.py:12: set_memory_growth(GPU:0, True) came too late and had no effect." in text, height
            shown = sum(name in text for name in ("came too late", "so TensorFlow took"))
            assert ("W: 1 more" in text) == (shown == 1), height
            assert len(lines) <= max(height, 5)


async def test_a_screen_that_may_not_steer_tells_the_options_instead_of_keys() -> None:
    async with running(app(STREAM, UiOptions(readonly=True)), (120, 40)) as (pilot, shown):
        text = text_of(shown)
        assert "turn growth on (--growth on)" in text and "[G]" not in text
        await pilot.press("W", "down")
        text = text_of(await drawn(pilot))
        assert "turn growth on (--growth on)" in text and "[G]" not in text
