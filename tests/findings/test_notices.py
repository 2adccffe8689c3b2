"""Facts in the stream and their texts: notices, damage, failed starts, the probe, the hook. Each kind has words."""

import pytest

from tests import streams as s
from tfmemtop import events
from tfmemtop.events.damage import damage_text
from tfmemtop.findings.missing import refusal_text, unrecorded, unreplayed_text
from tfmemtop.findings.probe import probe_remedy, probe_text
from tfmemtop.findings.rules.attached import say_state
from tfmemtop.findings.rules.notices import Noticed, say
from tfmemtop.help import topic
from tfmemtop.state import State, apply
from tfmemtop.ui.screens.details import unseen_tensors


def notice(kind: events.NoticeKind | None, detail: str = "why it is so") -> events.Notice:
    return events.Notice(t=1.0, key="k", level=events.Level.WARNING, kind=kind, detail=detail, about=4711, count=12)


@pytest.mark.parametrize("kind", events.NoticeKind)
def test_every_kind_is_said_with_what_it_is_about(kind: events.NoticeKind) -> None:
    said = say(notice(kind)).line
    assert said
    assert "{" not in said and "None" not in said


def test_what_comes_from_outside_is_not_taken_for_a_template() -> None:
    assert "{about} {x}" in say(notice(events.NoticeKind.DRIVER_FAILED, "{about} {x}")).text


def test_one_that_takes_back_says_nothing() -> None:
    assert say(notice(None)).line == ""


@pytest.mark.parametrize("kind", events.NoticeKind)
def test_a_finding_offers_what_helps_where_there_is_something(kind: events.NoticeKind) -> None:
    given = notice(kind)
    assert [remedy.text for remedy in Noticed(given).remedies] == [text for text in [say(given).remedy] if text]


# Data that could not be read: every reason has a text, and is listed in the manual.


@pytest.mark.parametrize("damage", events.Damage)
def test_every_reason_is_said_and_listed(damage: events.Damage) -> None:
    assert "{" not in damage_text(damage, "why") and damage_text(damage, "why")
    assert f"`{damage.value}`" in topic("formats")


def test_it_ends_the_sentence_of_what_could_not_be_read() -> None:
    outside = events.Outside(t=1.0, pid=7, state=events.OutsideState.NOT_SOUND, damage=events.Damage.REGIONS)
    assert damage_text(events.Damage.REGIONS) in say_state(outside).text


# The texts about the probe, and about a hook that cannot be read: the stream has facts, from which they are made.


@pytest.mark.parametrize("note", events.ProbeNote)
def test_every_note_has_words(note: events.ProbeNote) -> None:
    told = events.Probe(
        t=1.0,
        pid=7,
        state=events.ProbeState.FAILED,
        note=note,
        detail="DETAIL",
        file="/x.refused",
        signal=11,
        count=400,
    )
    text, remedy = probe_text(told), probe_remedy(told)
    assert text and "None" not in text and "{" not in text
    assert ("SIGSEGV" in text) == ("ended_process" in note.value)
    assert ("/x.refused" in remedy) == (note is events.ProbeNote.ENDED_PROCESS)


@pytest.mark.parametrize("why", events.Unbuildable)
def test_every_failed_build_has_words(why: events.Unbuildable) -> None:
    trial = events.Distrust(events.Fault.MISCOUNTED, figures=[2000, 1, 0])
    unbuilt = events.Unbuilt(why, detail="{DETAIL}", file="/x", count=11, trial=trial)
    told = events.Probe(t=1.0, pid=7, state=events.ProbeState.FAILED, unbuilt=unbuilt)
    text, remedy = probe_text(told), probe_remedy(told)
    assert text and "None" not in text and "{" not in (text + remedy).replace("{DETAIL}", "")
    assert ("SIGSEGV" in text) == (why is events.Unbuildable.TRIAL_KILLED) and ("2,000" in text) == (
        why.value == "distrusted"
    )


@pytest.mark.parametrize("fault", events.Fault)
def test_every_fault_has_words_with_or_without_figures(fault: events.Fault) -> None:
    for figures in ([], [1, None, 3, 4, 5]):
        told = events.Probe(
            t=1.0, pid=7, state=events.ProbeState.PUBLIC, distrust=events.Distrust(fault, "DETAIL", figures, "GPU:0")
        )
        text = probe_text(told)
        assert ": GPU:0: " in text and "None" not in text and "{" not in text


@pytest.mark.parametrize("why", events.Unreplayed)
def test_every_failed_replay_has_words(why: events.Unreplayed) -> None:
    told = events.Replayed(t=1.0, pid=7, device="GPU:0", unreplayed=why, detail="DETAIL", count=3)
    assert told.is_missing and "None" not in unreplayed_text(told) and "{" not in unreplayed_text(told)


@pytest.mark.parametrize("why", events.Mapless)
def test_every_pool_without_a_map_has_words(why: events.Mapless) -> None:
    told = events.MemoryMap(t=1.0, pid=7, device="GPU:0", mapless=why, count=200_000, detail="DETAIL")
    assert (
        told.is_missing and refusal_text(told) and ("200,000" in refusal_text(told)) == (why is events.Mapless.TOO_MANY)
    )


@pytest.mark.parametrize("why", events.Unseen)
def test_every_reason_not_to_look_for_tensors_has_words(why: events.Unseen) -> None:
    told = events.Census(t=1.0, pid=7, kinds={}, largest=[], hidden=why, frozen=1234)
    assert told.looked and ("1,234" in unseen_tensors(told)) == (why is events.Unseen.FROZEN)


def test_a_program_that_ended_before_the_probe_was_ready_is_told_to_be_recorded_again() -> None:
    state = State()
    for event in (s.session(), s.run(), s.process(0.3, 100), s.hook(0.5, 100)):
        apply(state, event)
    assert "no pool" in unrecorded(state)
    apply(state, s.allocator(0.6, 100, 1 << 20))
    assert "before the probe was ready" in unrecorded(state)
    apply(state, events.Probe(t=0.7, pid=100, state=events.ProbeState.BUILDING))
    assert "before the probe was ready" in unrecorded(state)
    left_out = events.ProbeNote.LEFT_OUT
    apply(state, events.Probe(t=0.8, pid=100, state=events.ProbeState.UNAVAILABLE, note=left_out))
    assert "--no-probe" in unrecorded(state)


def test_what_is_wrong_with_a_hook_is_said() -> None:
    state = State()
    apply(state, events.HookError(t=1.0, pid=7, text="KeyError: 3", doing="read:allocators"))
    (notice,) = state.notices.values()
    assert "process 7" in say(notice).text and say(notice).text.endswith(": read allocators: KeyError: 3")
