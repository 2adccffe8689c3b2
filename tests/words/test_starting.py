"""Every reason why nothing was started has a text and an exit code."""

import msgspec
import pytest

from tfmemtop.engine.process.unstarted import Unstarted, Why
from tfmemtop.words.starting import start_text


@pytest.mark.parametrize("why", Why)
def test_every_reason_crosses_to_the_command_line_and_is_told_there(why: Why) -> None:
    unstarted = Unstarted(why, "{run}.sh", "what {others} said")
    told = msgspec.json.decode(msgspec.json.encode(unstarted), type=Unstarted)
    assert start_text(told)
    assert told.exit_code in (1, 2, 126, 127)


def test_what_may_run_nevertheless_is_told_with_its_output() -> None:
    killed = Unstarted(Why.ENGINE_FAILED, output_path="/outputs/a.log")
    assert start_text(killed) == (
        "the engine cannot be started: it ended; if the command runs, what it prints is in /outputs/a.log"
    )
