"""The script's terminal has the size of its panel from the start, and keeps this size."""

import re
import sys
from pathlib import Path

import pytest

from tests.starting import Start, ended
from tfmemtop import events as ev
from tfmemtop.events.recording import read

# The script is one process, because each process is a row in the table. So it does not call stty, and it is not run by
# "python3", which starts further processes on some machines.
ASKS_TWICE = """import os
def ask():
    columns, rows = os.get_terminal_size()
    print(rows, columns)
ask()
input()
ask()
raise SystemExit(5)
"""


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (121, 37), (200, 60)], ids=str)
def test_it_starts_in_the_size_that_it_has_once_all_is_drawn(
    start: Start,
    home: Path,
    size: tuple[int, int],
) -> None:
    (home / "py").symlink_to(sys.executable)
    child = start("--record", "run.jsonl", "--", "./py", "-c", ASKS_TWICE, size=size)
    child.expect("Output")
    child.expect("py -c import")  # its row in the table shows that readings have come
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
