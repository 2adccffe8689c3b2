"""Keys while a script prints without pause, through a real terminal."""

import signal
import sys
import time

import pytest

from tests.starting import Start, ended

ANSWER_S = 15.0
"""The longest wait for the answer to a key, in seconds. It leaves room for a busy machine: the aim is 0.2 s
(``python -m tests.tools.bench keys``)."""

_ALIGNS = "import os\nwhile True: os.write(1, b'\\033#8\\r\\n' * 1000)"


@pytest.mark.parametrize("command", [["yes"], [sys.executable, "-c", _ALIGNS]], ids=["yes", "alignment"])
def test_a_key_is_acted_on_while_the_script_prints_without_pause(start: Start, command: list[str]) -> None:
    child = start("--", *command, size=(100, 30))
    child.expect("Output")
    child.expect("00:00:0[1-9]")  # the script has printed for that long
    waited = []
    for key, answer in (("?", "keys and words"), ("h", "Output"), ("q", "The script is still running")):
        begun = time.monotonic()
        child.send(key)
        child.expect(answer)
        waited.append(time.monotonic() - begun)
    assert max(waited) < ANSWER_S
    child.send("s")
    assert ended(child)[0] == 128 + signal.SIGTERM
