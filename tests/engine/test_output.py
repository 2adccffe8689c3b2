"""The script's output in the engine: at once in the file, and bounded there."""

import re
import sys
from pathlib import Path

from tests.engines import Engines
from tfmemtop.engine.process import keeper, kept_output, output
from tfmemtop.engine.process.launch import Launched
from tfmemtop.events import Notice, Output, RunEnd

_PRINTS_MUCH = """
import os
def write(data):
    while data:
        data = data[os.write(1, data):]
write(b"the beginning\\n")
for number in range(1000):
    write((b"%06d " % number + b"x" * 72 + b"\\n") * 800)
write(b"the end\\n")
"""


def _content(launched: Launched) -> bytes:
    return Path(launched.output_path or "").read_bytes()


async def test_a_flood_costs_neither_disk_nor_screen(engines: Engines) -> None:
    launched = engines.launch(sys.executable, "-c", _PRINTS_MUCH)
    screen = await engines.look(launched.socket)
    end = await screen.until(RunEnd)
    assert end.exit_code == 0
    assert [notice for notice in screen.all(Notice) if notice.key != "nvml"] == []
    printed = 64_800_000 + len(b"the beginning\r\nthe end\r\n")
    content = _content(launched)
    assert len(content) <= kept_output.HEAD + 2 * kept_output.TAIL + (1 << 20)
    assert content.startswith(b"the beginning\r\n") and content.endswith(b"the end\r\n")
    marker = re.search(rb"\n\[tfmemtop: (\d+) bytes left out here; the output goes on after byte \d+\]\n", content)
    assert marker and len(content) - len(marker[0]) + int(marker[1]) == printed
    told = screen.all(Output)
    assert sum(len(event.text) + event.skipped for event in told) == printed
    assert screen.shown.endswith("the end\r\n")
    time_s = end.t - told[0].t
    assert len(screen.shown) <= 2 * 256 * 1024 + time_s / output.TICK_S * keeper.CHUNK
