"""Keys while a script prints without pause, on a real terminal. ``python -m tests.tools.bench keys`` times them."""

import signal
import sys

import pytest

from tests.starting import Start, ended

_ALIGNS = "import os\nwhile True: os.write(1, b'\\033#8\\r\\n' * 1000)"


@pytest.mark.parametrize("command", [["yes"], [sys.executable, "-c", _ALIGNS]], ids=["yes", "alignment"])
def test_a_key_is_acted_on_while_the_script_prints_without_pause(start: Start, command: list[str]) -> None:
    child = start("--", *command, size=(100, 30))
    child.expect("Output")
    child.expect("00:00:0[1-9]")  # the script has printed for that long
    for key, answer in (("?", "keys and words"), ("h", "Output"), ("q", "The script is still running")):
        child.send(key)
        child.expect(answer)
    child.send("s")
    assert ended(child)[0] == 128 + signal.SIGTERM
