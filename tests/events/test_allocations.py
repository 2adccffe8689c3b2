"""Unpacking returns what was packed, and damaged data are refused."""

import zlib
from contextlib import suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import windows as w
from tfmemtop.events import Holding
from tfmemtop.events.allocations import Call, TraceAllocations, WindowAllocations, pack, unpack
from tfmemtop.events.damage import Damage, Damaged

WINDOW = w.step().content()
TRACE = TraceAllocations(
    names=["sequential/d1/MatMul", "", "Größe"],
    events=[(0, 1280), (2, 2**63 - 1), (1, 0)],
    operations=[2, -1],
    runs=[-1, 0],
    scratch=[1],
    calls=[Call(0, 1)],
)


@pytest.mark.parametrize("content", [WINDOW, WindowAllocations(), TRACE, TraceAllocations()])
def test_unpacking_returns_what_was_packed(content: WindowAllocations | TraceAllocations) -> None:
    assert unpack(pack(content), type(content)) == content


def test_a_step_takes_few_bytes() -> None:
    assert len(pack(WINDOW)) < 40 * len(WINDOW.holdings)


@pytest.mark.parametrize(
    ("packed", "damage"),
    [
        (b"", Damage.CUT_SHORT),
        (b"no zlib", Damage.OTHER_FORM),
        (pack(WINDOW)[:-9], Damage.CUT_SHORT),
        (zlib.compress(b""), Damage.OTHER_FORM),
        (zlib.compress(b"\x91" * 100_000), Damage.OTHER_FORM),
        (zlib.compress(b"\x98" + b"\x90" * 7 + b"\x91" * 100_000), Damage.OTHER_FORM),  # in a field of a later version
        (zlib.compress(msgspec.msgpack.encode([1])), Damage.OTHER_FORM),
        (zlib.compress(b"\x91\x91\xa1\xff"), Damage.OTHER_FORM),  # a name that is not UTF-8
        (zlib.compress(bytes(2**24)), Damage.TOO_LARGE),
    ],
)
@pytest.mark.parametrize("kind", [WindowAllocations, TraceAllocations])
def test_what_cannot_be_unpacked_is_damaged(packed: bytes, damage: Damage, kind: type[msgspec.Struct]) -> None:
    with pytest.raises(Damaged) as raised:
        unpack(packed, kind)
    assert raised.value.damage is damage


@pytest.mark.parametrize(
    "changes",
    [
        {"holdings": [*WINDOW.holdings[1:], len(WINDOW.kinds)]},  # there is no such kind
        {"holdings": [*WINDOW.holdings[1:], -1]},
        {"begins": WINDOW.begins[1:]},
        {"ends": [len(WINDOW.times), *WINDOW.ends[1:]]},
        {"begins": [-2, *WINDOW.begins[1:]]},
        {"names": ["a"] * 5000},
        {"kinds": [Holding(0, None, "", "", -1, 1, 1)] * len(WINDOW.kinds)},
        {"times": [2**63] * len(WINDOW.times)},
    ],
)
def test_figures_out_of_their_bounds_are_damage(changes: dict[str, object]) -> None:
    fields = {name: changes.get(name, getattr(WINDOW, name)) for name in WINDOW.__struct_fields__}
    packed = zlib.compress(msgspec.msgpack.encode(list(fields.values())))
    with pytest.raises(Damaged) as raised:
        unpack(packed, WindowAllocations)
    assert raised.value.damage is Damage.OTHER_FORM


@given(st.binary(max_size=64), st.integers(0, 200))
def test_whatever_is_unpacked_is_damaged_or_found(text: bytes, at: int) -> None:
    for content in (WINDOW, TRACE):
        packed = msgspec.msgpack.encode(content)
        for data in (text, zlib.compress(text), zlib.compress(packed[:at] + text + packed[at + len(text) :])):
            with suppress(Damaged):
                unpack(data, type(content))
