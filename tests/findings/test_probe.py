"""The texts about the probe, and about a hook that cannot be read: the stream has facts, from which they are made."""

import pytest

from tfmemtop.events import (
    Census,
    Distrust,
    Fault,
    HookError,
    HookPart,
    HookTrouble,
    Mapless,
    MemoryMap,
    Probe,
    ProbeNote,
    ProbeState,
    Replayed,
    Unbuildable,
    Unbuilt,
    Unreplayed,
    Unseen,
    Windowless,
    decode_event,
)
from tfmemtop.findings.holder_texts import why_windowless
from tfmemtop.findings.notice_texts import say
from tfmemtop.findings.probe_text import probe_remedy, probe_text
from tfmemtop.reports.process_text import unseen_tensors
from tfmemtop.reports.whatif_text import unreplayed_text
from tfmemtop.state import State, apply
from tfmemtop.ui.draw.map_text import refusal_text


@pytest.mark.parametrize("note", ProbeNote)
def test_every_note_has_words(note: ProbeNote) -> None:
    told = Probe(
        t=1.0, pid=7, state=ProbeState.FAILED, note=note, detail="DETAIL", file="/x.refused", signal=11, count=400
    )
    text, remedy = probe_text(told), probe_remedy(told)
    assert text and "None" not in text and "{" not in text
    assert ("SIGSEGV" in text) == ("ended_process" in note.value)
    assert ("/x.refused" in remedy) == (note is ProbeNote.ENDED_PROCESS)


@pytest.mark.parametrize("why", Unbuildable)
def test_every_failed_build_has_words(why: Unbuildable) -> None:
    trial = Distrust(Fault.MISCOUNTED, figures=[2000, 1, 0])
    unbuilt = Unbuilt(why, detail="{DETAIL}", file="/x", count=11, trial=trial)
    told = Probe(t=1.0, pid=7, state=ProbeState.FAILED, unbuilt=unbuilt)
    text, remedy = probe_text(told), probe_remedy(told)
    assert text and "None" not in text and "{" not in (text + remedy).replace("{DETAIL}", "")
    assert ("SIGSEGV" in text) == (why is Unbuildable.TRIAL_KILLED) and ("2,000" in text) == (why.value == "distrusted")


@pytest.mark.parametrize("fault", Fault)
def test_every_fault_has_words_with_or_without_figures(fault: Fault) -> None:
    for figures in ([], [1, None, 3, 4, 5]):
        told = Probe(t=1.0, pid=7, state=ProbeState.PUBLIC, distrust=Distrust(fault, "DETAIL", figures, "GPU:0"))
        text = probe_text(told)
        assert text.startswith("without the probe the pools are not known here: GPU:0: ")
        assert "None" not in text and "{" not in text


@pytest.mark.parametrize("part", HookPart)
def test_every_part_of_a_hook_has_words(part: HookPart) -> None:
    state = State()
    apply(state, HookError(t=1.0, pid=7, text="KeyError: 3", part=part, of="THIS"))
    (notice,) = state.notices.values()
    assert say(notice).text.endswith(": KeyError: 3") and "{" not in say(notice).text


@pytest.mark.parametrize("why", Unreplayed)
def test_every_failed_replay_has_words(why: Unreplayed) -> None:
    told = Replayed(t=1.0, pid=7, device="GPU:0", unreplayed=why, detail="DETAIL", count=3)
    assert told.is_missing and "None" not in unreplayed_text(told) and "{" not in unreplayed_text(told)


@pytest.mark.parametrize("why", Windowless)
def test_every_window_that_was_not_opened_has_words(why: Windowless) -> None:
    state = State()
    apply(state, HookError(t=1.0, pid=7, text="", kind=HookTrouble.NO_WINDOW, of=why.value))
    (notice,) = state.notices.values()
    assert say(notice).text == f"no allocations of process 7 were recorded: {why_windowless(why)}"


@pytest.mark.parametrize("why", Mapless)
def test_every_pool_without_a_map_has_words(why: Mapless) -> None:
    told = MemoryMap(t=1.0, pid=7, device="GPU:0", mapless=why, count=200_000, detail="DETAIL")
    assert told.is_missing and refusal_text(told) and ("200,000" in refusal_text(told)) == (why is Mapless.TOO_MANY)


@pytest.mark.parametrize("why", Unseen)
def test_every_reason_not_to_look_for_tensors_has_words(why: Unseen) -> None:
    told = Census(t=1.0, pid=7, kinds={}, largest=[], hidden=why, frozen=1234)
    assert told.looked and ("1,234" in unseen_tensors(told)) == (why is Unseen.FROZEN)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (b'"text":"too deep","kind":"unread"', "the hook sent what cannot be read: too deep"),
        (
            b'"text":"","kind":"too_long","count":9',
            "the hook sent what cannot be read: a packet is longer than 9 bytes",
        ),
        (b'"text":"KeyError: 3"', "KeyError: 3"),
    ],
)
def test_what_is_wrong_with_a_hook_is_said(fields: bytes, said: str) -> None:
    state, wrong = State(), "a part of the hook failed in process 7; the script goes on"
    apply(state, decode_event(b'{"type":"hook_error","t":1.0,"pid":7,' + fields + b"}"))
    (notice,) = state.notices.values()
    assert say(notice).text == f"{wrong}: {said}"
