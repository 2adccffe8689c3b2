"""The text of the metrics: a reader gets back the figures and labels that were put in."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.metrics.scraping import events_until, parsed, watched
from tfmemtop.metrics.families import PREFIX, Family, Kind
from tfmemtop.metrics.text import text_of

TEXT = st.text(st.characters(codec="utf-8"))


@given(TEXT, TEXT, st.one_of(st.integers(0, 2**64), st.floats(allow_nan=False)))
def test_whatever_a_label_holds_is_read_again(uuid: str, name: str, figure: float) -> None:
    labels = {"uuid": uuid, "name": name}
    text = text_of([Family("device_info", Kind.GAUGE, ("uuid", "name"), [(labels, figure)])]).decode()
    assert parsed(text) == {(f"{PREFIX}device_info", frozenset(labels.items())): figure}


def test_what_is_no_text_is_replaced() -> None:
    text = text_of([Family("running", Kind.GAUGE, ("host",), [({"host": "a\udce4"}, math.inf)])]).decode()
    assert parsed(text) == {(f"{PREFIX}running", frozenset({("host", "a?")})): math.inf}


@pytest.mark.parametrize("name", ["h100-transformer.jsonl", "h200-two-cards.jsonl", "cpu-oom.jsonl"])
def test_no_sample_of_a_recorded_session_is_lost(name: str) -> None:
    found, _ = watched(events_until(name, 0.6)).look("first")
    samples = {
        (PREFIX + family.name, frozenset((label, labels[label]) for label in family.labels)): value
        for family in found
        for labels, value in family.samples
    }
    assert parsed(text_of(found).decode()) == samples
