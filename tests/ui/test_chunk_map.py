"""The map as lines: its glyphs, borders and labels. Every line has the right width, whatever the pool."""

from hypothesis import given
from hypothesis import strategies as st

from tests import pools
from tests import streams as s
from tfmemtop.state.pool_views import RegionView, pool_map
from tfmemtop.ui.draw import chunk_map, map_figures
from tfmemtop.ui.draw.lines import Line, width_of
from tfmemtop.ui.draw.palette import ASCII, UNICODE, Glyphs

MIB = 2**20


def region(cells: bytes, number: int = 1, size: int = 256 * MIB, taken_s: float | None = 12.3) -> RegionView:
    return RegionView(number, 4096 * number, 2**30, size, size * 2 // 5, 9, 6, cells, taken_s)


def text(line: Line) -> str:
    return "".join(segment.text for segment in line)


def test_glyphs_tell_nothing_all_and_three_degrees_between() -> None:
    cells = bytes([0, 1, 85, 86, 170, 171, 254, 255])
    assert text(chunk_map.draw_cells(cells, UNICODE)) == "·░░▒▒▓▓█"
    assert text(chunk_map.draw_cells(cells, ASCII)) == ".--++==#"


def test_colour_is_not_the_only_carrier_of_full_and_mixed() -> None:
    line = chunk_map.draw_cells(bytes([255, 100]), UNICODE)
    assert [segment.text for segment in line] == ["█", "▒"]
    assert line[0].style != line[1].style


def test_merging_never_turns_mixed_into_full_or_free() -> None:
    assert chunk_map.merge(bytes([255] * 999 + [254]), 1000) == bytes([254])
    assert chunk_map.merge(bytes([0] * 999 + [1]), 1000) == bytes([1])
    assert chunk_map.merge(bytes([255, 255, 0, 0, 7]), 2) == bytes([255, 0, 7])


def test_a_region_is_labelled_and_bordered() -> None:
    found = [region(bytes([255] * 100)), region(bytes([0] * 10), 2, taken_s=None)]
    arranged = chunk_map.arrange(found, 62, 10)
    lines = [text(line) for line in chunk_map.draw(found, arranged, 100, 0, 10, UNICODE, chosen=1)]
    assert lines[0].split("▏")[0].split() == ["1", "1.0G", "256.0M", "40%", "00:12"]
    assert lines[0].split("▏")[1] == "█" * 62 and lines[1].strip() == "▏" + "█" * 38
    assert lines[2].startswith("▸") and "—" in lines[2] and lines[2].split("▏")[1].strip() == "·" * 10
    told = text(map_figures.region_line(found[0], 100, UNICODE))
    assert told.startswith(" region 1 at 1.0G, taken at 00:12, 256.0M, 40% full, 9 chunks, 6 in use")


def test_what_is_not_sure_is_marked() -> None:
    unsure = RegionView(1, 0, 0, 8, 8, 1, 1, b"\xff", 75.0, sure=False)
    assert chunk_map.taken_at(unsure, UNICODE) == "~01:15"


def test_all_of_a_large_pool_is_shown_in_little_room() -> None:
    view = pool_map(s.fold(pools.watched(pools.doubling(11))), (100, "GPU:0"))
    assert view is not None
    wide = chunk_map.arrange(view.regions, 100, 40)
    assert wide.merged == 1 and sum(len(row.cells) for row in wide.rows) == len(b"".join(r.cells for r in view.regions))
    narrow = chunk_map.arrange(view.regions, 40, 12)
    assert len(narrow.rows) <= 12 and narrow.merged > 1 and narrow.cell_bytes > wide.cell_bytes


def test_the_strip_shows_the_whole_pool_with_borders() -> None:
    lines = [text(line) for line in chunk_map.strip([region(b"\xff" * 8), region(b"\0" * 8, 2)], 20, 3, UNICODE)]
    assert lines == ["████████▏········".ljust(20)]
    squeezed = chunk_map.strip([region(bytes([n % 256 for n in range(2000)]))], 30, 2, ASCII)
    assert [width_of(line) for line in squeezed] == [30, 30]


regions = st.lists(
    st.builds(
        region,
        st.binary(max_size=300),
        number=st.integers(1, 999),
        size=st.integers(0, 2**45),
        taken_s=st.none() | st.floats(-5, 10**6),
    ),
    max_size=60,
)
glyphs = st.sampled_from([UNICODE, ASCII])


@given(regions, st.integers(1, 200), st.integers(0, 60), st.integers(0, 9), glyphs, st.none() | st.integers(0, 60))
def test_every_line_is_exactly_as_wide_as_it_shall_be(
    found: list[RegionView], width: int, height: int, top: int, kind: Glyphs, chosen: int | None
) -> None:
    arranged = chunk_map.arrange(found, width - chunk_map.label_width(width), height)
    lines = chunk_map.draw(found, arranged, width, top, height, kind, chosen)
    lines += chunk_map.draw_zoomed(arranged, width, top, height, kind)
    lines += chunk_map.strip(found, width, height, kind)
    assert {width_of(line) for line in lines} <= {width}
    for one in found:
        assert width_of(map_figures.region_line(one, width, kind)) <= width


@given(regions, st.integers(1, 120), st.integers(0, 50))
def test_nothing_is_left_out_where_there_are_rows_enough(found: list[RegionView], width: int, height: int) -> None:
    arranged = chunk_map.arrange(found, width, height)
    shown = [index for index, one in enumerate(found) if one.cells]
    assert sorted({row.region for row in arranged.rows}) == shown
    assert len(arranged.rows) <= max(height, len(shown))
