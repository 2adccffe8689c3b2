"""What is said of the probe, and of a hook that cannot be read: facts in the stream, sentences at its end."""

import pytest

from tfmemtop.events import Probe, ProbeNote, decode_event
from tfmemtop.state import State, apply
from tfmemtop.words.notices import say
from tfmemtop.words.probe import probe_remedy, probe_text


@pytest.mark.parametrize("note", ProbeNote)
def test_every_note_has_words(note: ProbeNote) -> None:
    told = Probe(t=1.0, pid=7, state="failed", note=note, detail="DETAIL", file="/x.refused", signal=11, count=400)
    text, remedy = probe_text(told), probe_remedy(told)
    assert text and "None" not in text and "{" not in text
    assert ("SIGSEGV" in text) == ("ended_process" in note.value)
    assert ("/x.refused" in remedy) == (note is ProbeNote.ENDED_PROCESS)


def test_a_recording_with_sentences_reads_as_it_did() -> None:
    line = b'{"type":"probe","t":1.0,"pid":7,"state":"unavailable","text":"no compiler","remedy":"apt install g++"}'
    told = decode_event(line)
    assert isinstance(told, Probe)
    assert (probe_text(told), probe_remedy(told)) == ("no compiler", "apt install g++")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (b'"text":"the hook sent what cannot be read: too deep"', "the hook sent what cannot be read: too deep"),
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
