"""The stacked bar: layers add up, small ones stay visible, and the limit is marked at its place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfmemtop.state.history import History
from tfmemtop.state.views import GPU_LAYERS, DevicePanel, Layer, LayerKind, Share
from tfmemtop.ui.draw.bar import apportion, bar, legend, shared_legend, short_usage, usage
from tfmemtop.ui.draw.lines import Line, width_of
from tfmemtop.ui.draw.palette import ASCII, UNICODE
from tfmemtop.units import format_short

MIB, GIB = 1 << 20, 1 << 30


def panel(*sizes: int, capacity: int | None = None, limit: int | None = None, used: int | None = None) -> DevicePanel:
    shares = (Share.IN_USE, Share.CACHED, Share.SCRIPT, Share.OTHERS, Share.FREE)
    layers = tuple(Layer(*one) for one in zip(LayerKind, shares, sizes, strict=False))
    return DevicePanel("gpu0", None, None, None, capacity, used, layers, limit, None, History(), GPU_LAYERS)


def text(line: Line) -> str:
    return "".join(segment.text for segment in line)


@given(st.lists(st.integers(0, 1 << 50), min_size=1, max_size=6), st.integers(0, 300))
def test_cells_add_up_and_small_layers_are_seen(sizes: list[int], width: int) -> None:
    cells = apportion(sizes, width)
    assert all(count >= 0 for count in cells)
    assert sum(cells) == (width if sum(sizes) else 0)
    if width >= sum(size > 0 for size in sizes):
        assert all((count > 0) == (size > 0) or count > 0 for count, size in zip(cells, sizes, strict=True) if size)
    assert all(count == 0 for count, size in zip(cells, sizes, strict=True) if not size)


@given(st.lists(st.integers(1, 1 << 40), min_size=2, max_size=5), st.integers(20, 200))
def test_borders_lie_where_the_bytes_say_to_within_the_cells_small_layers_took(sizes: list[int], width: int) -> None:
    cells = apportion(sizes, width)
    for index in range(len(sizes)):
        exact = sum(sizes[: index + 1]) * width / sum(sizes)
        assert abs(sum(cells[: index + 1]) - exact) <= len(sizes)


def test_the_bar_of_a_full_card_reads_left_to_right() -> None:
    full = panel(2 * GIB, 4 * GIB, GIB, GIB, 8 * GIB, capacity=16 * GIB)
    assert text(bar(full, 18, UNICODE)) == "▐██▓▓▓▓▒░········▌"
    assert text(bar(full, 18, ASCII)) == "[##====+-........]"


@pytest.mark.parametrize(("in_use", "expected"), [(1, "▏"), (GIB // 2, "▌"), (GIB, "█"), (GIB + GIB // 4, "█▎")])
def test_a_little_in_use_is_a_part_of_a_cell(in_use: int, expected: str) -> None:
    drawn = text(bar(panel(in_use, 0, 0, 0, 20 * GIB - in_use, capacity=20 * GIB), 22, UNICODE))
    assert drawn == f"▐{expected:·<20}▌"


def test_the_limit_is_marked_at_its_place() -> None:
    limited = panel(GIB, GIB, 0, 0, 8 * GIB, capacity=10 * GIB, limit=4 * GIB)
    assert text(bar(limited, 12, UNICODE)) == "▐█▓··▏·····▌"
    whole = panel(GIB, 9 * GIB, 0, 0, 0, capacity=10 * GIB, limit=10 * GIB)
    assert text(bar(whole, 12, UNICODE)) == "▐█▓▓▓▓▓▓▓▓▓▌"


def test_nothing_read_yet_is_an_empty_bar() -> None:
    assert text(bar(panel(capacity=GIB), 6, UNICODE)) == "▐    ▌"
    assert text(bar(panel(), 6, UNICODE)) == "▐    ▌"


@given(
    st.lists(st.integers(0, 1 << 45), max_size=5),
    st.none() | st.integers(0, 1 << 45),
    st.none() | st.integers(0, 1 << 45),
    st.integers(0, 200),
)
def test_the_bar_is_as_wide_as_asked(sizes: list[int], capacity: int | None, limit: int | None, width: int) -> None:
    for glyphs in (UNICODE, ASCII):
        assert width_of(bar(panel(*sizes, capacity=capacity, limit=limit), width, glyphs)) == width


def test_usage_says_the_unit_once_where_it_is_the_same() -> None:
    assert usage(panel(capacity=140 * GIB, used=2 * GIB)) == "2.0 of 140.0 GiB"
    assert usage(panel(capacity=140 * GIB, used=2 * MIB)) == "2.0 MiB of 140.0 GiB"
    assert usage(panel(capacity=140 * GIB)) == "— of 140.0 GiB"
    assert usage(panel(used=GIB)) == "1.0 GiB of —"
    assert short_usage(panel(capacity=140 * GIB, used=2 * GIB)) == "2.0/140.0G"
    assert short_usage(panel(capacity=1024 * GIB, used=2 * GIB)) == "2.0G/1.0T"
    assert short_usage(panel()) == "—/—"


def test_the_legend_names_every_layer_and_leaves_out_the_least_needed_first() -> None:
    shown = panel(140 * MIB, 886 * MIB, 608 * MIB, GIB, 137 * GIB, capacity=140 * GIB, limit=4 * GIB)
    wide = text(legend(shown, 140, 1, UNICODE)[0])
    said = "█ in use 140.0M ▓ cached 886.0M ▒ script 608.0M ░ others 1.0G · free 137.0G limit ▏4.0G peak —"
    assert " ".join(wide.split()) == said
    narrow = text(legend(shown, 80, 1, UNICODE)[0])
    assert "cached 886.0M" in narrow and "limit ▏4.0G" in narrow and "free" not in narrow
    assert len(legend(shown, 80, 2, UNICODE)) == 2


@given(st.integers(0, 1 << 63))
def test_a_short_size_keeps_to_its_six_cells(size: int) -> None:
    assert len(format_short(size)) <= 6


def test_a_pool_that_cannot_be_known_is_said_to_be_so() -> None:
    in_use = Layer(LayerKind.IN_USE, Share.IN_USE, GIB)
    without = DevicePanel("gpu0", None, None, None, 8 * GIB, GIB, (in_use,), None, GIB, History(), GPU_LAYERS)
    said = text(legend(without, 100, 1, UNICODE)[0])
    assert " ".join(said.split()) == "█ in use 1.0G ▓ cached — limit — peak 1.0G"


@given(st.lists(st.integers(0, 1 << 45), max_size=5), st.integers(1, 200), st.integers(1, 3))
def test_the_legend_keeps_to_its_lines(sizes: list[int], width: int, rows: int) -> None:
    assert len(legend(panel(*sizes, capacity=1 << 40), width, rows, UNICODE)) <= rows
    assert width_of(shared_legend(UNICODE, width)) <= max(1, width)
