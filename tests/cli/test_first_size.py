"""The script starts in the terminal that its panel is, and keeps it."""

import re
from pathlib import Path

import pytest

from tests.cli.conftest import Start, ended
from tfmemtop import events as ev
from tfmemtop.recording import read


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (121, 37), (160, 48), (200, 60)], ids=str)
def test_it_starts_in_the_size_that_it_has_once_all_is_drawn(
    start: Start,
    home: Path,
    size: tuple[int, int],
) -> None:
    child = start("--record", "run.jsonl", "--", "sh", "-c", "stty size; read answer; stty size; exit 5", size=size)
    child.expect("Output")
    child.expect("sh -c stty")  # its row in the table: readings have come
    child.send("i")
    child.expect("typing")
    child.send("go\r\x1d")
    child.expect("ended with exit code 5")
    child.send("q")
    assert ended(child)[0] == 5
    recorded = list(read(home / "run.jsonl").events())
    printed = "".join(event.text for event in recorded if isinstance(event, ev.Output))
    told = [(event.rows, event.columns) for event in recorded if isinstance(event, ev.Terminal)]
    sizes = [(int(rows), int(columns)) for rows, columns in re.findall(r"(\d+) (\d+)\r\n", printed)]
    assert len(told) == 1 and sizes == told * 2
