"""Packed courses: unpacking returns what was packed, and damaged data are refused."""

import zlib
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfmemtop.events import Holding
from tfmemtop.events.courses import (
    Allocated,
    Freed,
    numbers,
    pack,
    pack_holdings,
    pack_names,
    pack_trace,
    unpack_calls,
    unpack_holdings,
    unpack_names,
    unpack_runs,
    unpack_scratch,
    unpack_spans,
    unpack_trace,
)
from tfmemtop.events.damage import Damage, Damaged

HOLDINGS = [Holding(None, None, "", "", 256, 256, 0)] * 3
raw = zlib.compress
BOMB = raw(bytes(2**23))


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


ROWS = b'[[0],[0],[null],[""],[""],[1],[1]]'


@pytest.mark.parametrize(
    ("packed", "damage"),
    [
        (b"no zlib", Damage.OTHER_FORM),
        (raw(b"["), Damage.OTHER_FORM),
        (raw(b"[1]"), Damage.OTHER_FORM),
        (raw(b"[" * 100_000), Damage.OTHER_FORM),
        (raw(b'["\xff"]'), Damage.OTHER_FORM),
        (raw(b'["a"]')[:-2], Damage.CUT_SHORT),
        (pack_names(["a"] * 5000), Damage.OTHER_FORM),
        (BOMB, Damage.TOO_LARGE),
    ],
)
def test_damaged_names(packed: bytes, damage: Damage) -> None:
    for unpack in (unpack_names, unpack_holdings):
        with pytest.raises(Damaged) as raised:
            unpack(packed)
        assert raised.value.damage is damage


@pytest.mark.parametrize(
    ("old", "new", "damage"),
    [
        (b"[0]", b"[0,0]", Damage.INCOMPLETE),
        (b"[0]", b"[1e300]", Damage.OTHER_FORM),
        (b"[0]", b"[%d]" % 2**31, Damage.OUT_OF_BOUNDS),
        (b"[1]", b"[-1]", Damage.OUT_OF_BOUNDS),
        (b"[1]", b"[%d]" % 10**30, Damage.OUT_OF_BOUNDS),
        (b'""', b'"\xff"', Damage.OTHER_FORM),
    ],
)
def test_damaged_holdings(old: bytes, new: bytes, damage: Damage) -> None:
    assert len(unpack_holdings(raw(ROWS))) == 1
    with pytest.raises(Damaged) as raised:
        unpack_holdings(raw(ROWS.replace(old, new, 1)))
    assert raised.value.damage is damage


def test_a_number_has_63_bits() -> None:
    assert list(numbers(raw(b"\xff" * 8 + b"\x7f"))) == [2**63 - 1]
    with pytest.raises(Damaged):
        list(numbers(raw(b"\xff" * 9 + b"\x01")))


@given(
    st.binary(max_size=64)
    | st.text('[]{}0123456789,"\\-.eEu\ud800null', max_size=40).map(lambda text: text.encode(errors="surrogatepass"))
)
def test_whatever_is_unpacked_is_damaged_or_found(text: bytes) -> None:
    unpacks: list[Callable[[bytes], object]] = [unpack_names, unpack_holdings, unpack_trace, unpack_scratch]
    unpacks += [unpack_calls, unpack_runs]
    unpacks += [lambda packed: list(numbers(packed)), lambda packed: unpack_spans(packed, HOLDINGS)]
    for packed in (text, raw(text), raw(ROWS[:9] + text + ROWS[9:])):
        for unpack in unpacks:
            with suppress(Damaged):
                unpack(packed)
