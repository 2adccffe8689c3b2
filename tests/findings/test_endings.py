"""How a run ended: the text for it, which is the same everywhere."""

import pytest

from tfmemtop.ending import how_ended
from tfmemtop.findings.ending import ending


@pytest.mark.parametrize(
    ("exit_code", "signal", "oom_killed", "words"),
    [
        (0, None, False, "ended with exit code 0"),
        (None, 11, False, "ended by SIGSEGV"),
        (None, 64, False, "ended by SIGRTMAX"),
        (None, 40, False, "ended by signal 40"),
        (139, None, False, "ended with exit code 139 (SIGSEGV)"),
        (255, None, False, "ended with exit code 255"),
        (None, 9, True, "killed by the kernel: the host ran out of memory"),
        (137, None, True, "killed by the kernel: the host ran out of memory"),
        (None, None, False, "ended; exit code unknown"),
    ],
)
def test_every_ending_has_its_words(exit_code: int | None, signal: int | None, oom_killed: bool, words: str) -> None:
    assert ending(how_ended(exit_code, signal, oom_killed)) == words
