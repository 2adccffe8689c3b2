"""Packed courses: unpacking returns what was packed, and damaged data are refused."""

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfmemtop.events import Holding
from tfmemtop.events.courses import (
    FOREVER,
    Allocated,
    Freed,
    Span,
    numbers,
    pack,
    pack_holdings,
    pack_names,
    pack_spans,
    pack_trace,
    unpack_holdings,
    unpack_names,
    unpack_spans,
    unpack_trace,
)
from tfmemtop.events.damage import Damage, Damaged

HOLDINGS = [Holding(None, None, "", "", 256, 256, 0)] * 3
raw = zlib.compress
BOMB = raw(bytes(2**23))


@given(st.lists(st.integers(0, 2**63 - 1)))
def test_numbers(values: list[int]) -> None:
    assert list(numbers(pack(values))) == values


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2**60), st.integers(-1, 99), st.integers(0, 99))))
def test_spans(made: list[tuple[int, int, int, int]]) -> None:
    spans = [Span(kind, at, begin, begin + life if life else FOREVER) for kind, at, begin, life in made]
    spans.sort(key=lambda span: span.begin)
    assert unpack_spans(pack_spans(spans), HOLDINGS) == spans


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2**40), st.none() | st.integers(0, 300)), min_size=1))
def test_a_trace_in_two_parts(made: list[tuple[int, int, int | None]]) -> None:
    first: list[Allocated | Freed] = [Allocated(*each) for each in made]
    second: list[Allocated | Freed] = [Freed(3, number) for number in range(len(made))]
    second += [Allocated(1, 5, None), Freed(2, len(made))]
    packed = pack_trace(first), pack_trace(second, len(first))
    assert (unpack_trace(packed[0]), unpack_trace(packed[1], len(first))) == (first, second)


def test_a_trace_takes_few_bytes() -> None:
    events: list[Allocated | Freed] = [Allocated(number % 5, 4096 * number, number % 300) for number in range(1000)]
    freed: list[Allocated | Freed] = [Freed(number % 5, number) for number in range(1000)]
    assert len(pack_trace([*events, *freed])) < 8 * 2000


@pytest.mark.parametrize(
    ("packed", "damage"),
    [
        (b"\x80", Damage.CUT_SHORT),
        (b"\x01", Damage.CUT_SHORT),
        (b"no zlib", Damage.OTHER_FORM),
        (raw(b"\x80"), Damage.CUT_SHORT),
        (raw(b"\x01"), Damage.CUT_SHORT),
        (pack([1, 7, 9, 0, 0, 0]), Damage.INCOMPLETE),
        (pack([0, 1, 0, 0, 0]), Damage.INCOMPLETE),
        (raw(b"\xff" * 20), Damage.OUT_OF_BOUNDS),
        (BOMB, Damage.TOO_LARGE),
    ],
)
def test_damaged_spans(packed: bytes, damage: Damage) -> None:
    with pytest.raises(Damaged) as raised:
        unpack_spans(packed, HOLDINGS)
    assert raised.value.damage is damage


@pytest.mark.parametrize(
    ("packed", "damage"),
    [
        (b"\x00", Damage.CUT_SHORT),
        (raw(b"\x00"), Damage.CUT_SHORT),
        (raw(b"\x00\x05"), Damage.CUT_SHORT),
        (raw(b"\x01\x00"), Damage.INCOMPLETE),
        (raw(b"\x80"), Damage.CUT_SHORT),
        (pack([2])[:-1], Damage.CUT_SHORT),
        (BOMB, Damage.TOO_LARGE),
    ],
)
def test_damaged_traces(packed: bytes, damage: Damage) -> None:
    with pytest.raises(Damaged) as raised:
        unpack_trace(packed)
    assert raised.value.damage is damage


def test_names_and_holdings() -> None:
    names = ["sequential/d1/MatMul", "", "Größe"]
    holdings = [Holding(2, [32, 10], "float32", "output", 1280, 1280, 3), *HOLDINGS]
    assert unpack_names(pack_names(names)) == names and unpack_holdings(pack_holdings(holdings)) == holdings
    assert pack_names([]) == pack_holdings([]) == b""
    assert not unpack_names(b"") and not unpack_holdings(b"")


@pytest.mark.parametrize("packed", [b"x", raw(b"["), raw(b"[1]"), raw(b'["a"]')[:-2], pack_names(["a"] * 5000), BOMB])
def test_damaged_names(packed: bytes) -> None:
    with pytest.raises(ValueError):
        unpack_names(packed)
    with pytest.raises(ValueError):
        unpack_holdings(packed)
