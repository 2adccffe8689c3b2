"""Every reason why nothing was started has a text and an exit code."""

import msgspec
import pytest

from tfmemtop.engine.opening import unstarted as why_unstarted
from tfmemtop.events import Level, Notice, NoticeKind
from tfmemtop.events.recording import RecordingError
from tfmemtop.events.recording.errors import Trouble
from tfmemtop.events.unstarted import Unstarted, Why
from tfmemtop.findings.notice_texts import say
from tfmemtop.findings.starting import start_text, unusable
from tfmemtop.limits import HostOwner, TooMuch, Whole
from tfmemtop.settings import NoSuchGpu
from tfmemtop.units import GIB


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


@pytest.mark.parametrize(
    "error",
    [
        TooMuch(90 * GIB, Whole(80 * GIB, 0)),
        TooMuch(90 * GIB, Whole(80 * GIB, 3), "90G"),
        TooMuch(90 * GIB, Whole(80 * GIB, HostOwner.JOB)),
        TooMuch(90 * GIB, Whole(80 * GIB, None)),
        NoSuchGpu(4, 2),
        NoSuchGpu(None, 0),
        RecordingError(Trouble.TAKEN, "/runs/a.jsonl"),
        RecordingError(Trouble.UNWRITABLE, "/runs/a.jsonl", "no room"),
    ],
)
def test_what_cannot_be_used_crosses_as_facts_and_has_the_same_words(error: Exception) -> None:
    told = msgspec.json.decode(msgspec.json.encode(why_unstarted(error)), type=Unstarted)
    assert start_text(told) == unusable(error)
    assert told.exit_code == 2


def test_a_notice_has_the_reason_as_facts() -> None:
    why = Unstarted(Why.NOT_FOUND, "pyhton")
    notice = Notice(t=1.0, key="relaunch", level=Level.ERROR, kind=NoticeKind.NOT_RELAUNCHED, unstarted=why)
    assert say(notice).text == "not relaunched: pyhton: command not found"
