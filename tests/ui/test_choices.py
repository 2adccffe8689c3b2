"""The choices that are saved when the screen ends: the next screen begins with them."""

from pathlib import Path

import pytest

from tests.ui.shown import RECORDINGS
from tfmemtop.experiments.session.replay import ReplaySource
from tfmemtop.ui import UiOptions
from tfmemtop.ui.app import TfmemtopApp
from tfmemtop.ui.draw.scale import ScaleChoice
from tfmemtop.ui.screens.main_screen import Choices, load_choices, save_choices


async def left(file: Path, *keys: str) -> Choices:
    """Return the choices of a screen after *keys*. It begins with those in *file*, and saves them there at its end."""
    app = TfmemtopApp(ReplaySource(RECORDINGS / "cpu-demo.jsonl"), UiOptions(), load_choices(file))
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.press(*keys)
        save_choices(app.choices, file)
    return app.choices


async def test_panels_and_order_are_those_of_the_screen_before(tmp_path: Path) -> None:
    file = tmp_path / "choices.json"
    assert await left(file) == Choices()
    changed = await left(file, "O", "f6", "s", "s")
    assert not changed.output and changed.allocators and changed.sort != "GPU"
    assert changed.scale is ScaleChoice.LOG
    assert await left(file) == changed
    back = await left(file, "O")
    assert back.output and back.sort == changed.sort


@pytest.mark.parametrize(
    "text", [b"", b"{", b'{"sort": 1}', b'{"sort": "no such", "scale": "no such"}', b"\xff", b"[]"]
)
async def test_a_damaged_file_is_as_none(tmp_path: Path, text: bytes) -> None:
    file = tmp_path / "choices.json"
    file.write_bytes(text)
    assert await left(file) == Choices()


def test_where_nothing_can_be_kept_the_user_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert load_choices(tmp_path / "file" / "choices.json") == Choices()
    with pytest.raises(OSError):
        save_choices(Choices(sort="PID"), tmp_path / "file" / "choices.json")
