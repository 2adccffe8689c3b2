"""The two dialogs that the others are made of: a list to choose from, and a line of text to type."""

from typing import Any

import pytest
from textual.app import App
from textual.events import Key
from textual.pilot import Pilot

from tfmemtop.ui.screens.choice_dialog import InputDialog, Option, OptionsDialog
from tfmemtop.ui.screens.dialog import Dialog

OPTIONS = [
    Option("on", "on", "takes memory as it needs it"),
    Option("off", "off", "takes the whole card at the first allocation " * 3),
    Option("as the script says", "script", key="s"),
]


class Host(App[None]):
    """An empty app that stores the results of dialogs."""

    def __init__(self) -> None:
        super().__init__(ansi_color=True)
        self.results: list[object] = []


async def opened(pilot: Pilot[None], dialog: Dialog[Any]) -> list[object]:
    app = pilot.app
    assert isinstance(app, Host)
    await app.push_screen(dialog, app.results.append)
    await pilot.pause()
    return app.results


def shown(dialog: Dialog[str]) -> list[str]:
    return [strip.text for strip in dialog._compositor.render_strips()]


@pytest.mark.parametrize("size", [(120, 36), (60, 16)])
async def test_a_box_within_nine_tenths_of_the_terminal(size: tuple[int, int]) -> None:
    async with Host().run_test(size=size) as pilot:
        dialog = OptionsDialog("Growth [b]of[/b] the next run", OPTIONS, text=["word " * 200])
        await opened(pilot, dialog)
        lines = shown(dialog)
        box = [line for line in lines if line.strip()]
        assert len(box) <= size[1] * 9 // 10 and max(len(line.strip()) for line in box) <= size[0] * 9 // 10
        assert "Growth [b]of[/b] the next run" in box[0]
        assert box[-1].strip()[0] == "└"
        assert "Enter take" in box[-2] and "Esc close" in box[-2]


@pytest.mark.parametrize(
    ("keys", "result"),
    [
        (["down", "enter"], "off"),
        (["2"], "off"),
        (["s"], "script"),
        (["escape"], None),
    ],
)
async def test_choosing_with_keys(keys: list[str], result: str | None) -> None:
    async with Host().run_test(size=(80, 24)) as pilot:
        results = await opened(pilot, OptionsDialog("Growth", OPTIONS))
        await pilot.press(*keys)
        assert results == [result]


async def test_the_chosen_option_of_many_stays_in_view_through_a_resize() -> None:
    async with Host().run_test(size=(80, 24)) as pilot:
        dialog = OptionsDialog("Many", [Option(f"number {n}", str(n)) for n in range(50)])
        results = await opened(pilot, dialog)
        await pilot.press("end", *["up"] * 19)
        assert any("number 30" in line for line in shown(dialog))
        assert any("▼ 3 more below  ▲ 30 above" in line for line in shown(dialog))
        await pilot.resize_terminal(60, 16)
        await pilot.pause()
        assert any("number 30" in line for line in shown(dialog))
        await pilot.press("end", "enter")
        assert results == ["49"]


@pytest.mark.parametrize(
    ("replaces", "keys", "result"),
    [
        (True, [*"30M", "enter"], "30M"),
        (False, [*"30M", "enter"], "600M30M"),
        (True, ["1", "escape"], None),
    ],
)
async def test_what_is_typed_replaces_the_value_or_is_added_to_it_unless_the_user_leaves(
    replaces: bool, keys: list[str], result: str | None
) -> None:
    async with Host().run_test(size=(80, 24)) as pilot:
        answers = await opened(pilot, InputDialog("Limit", read=str, value="600M", replaces=replaces))
        await pilot.press(*keys)
        assert answers == [result]


async def test_keys_that_arrive_at_once_are_taken_in_their_order() -> None:
    async with Host().run_test(size=(80, 24)) as pilot:
        answers = await opened(pilot, InputDialog("Limit", read=str, value="600M"))
        for key, character in [("ctrl+u", "\x15"), ("2", "2"), ("5", "5"), ("enter", "\r")]:
            pilot.app.post_message(Key(key, character))
        await pilot.pause()
        assert answers == ["25"]
