"""The map as lines: its glyphs, borders and labels. Every line has the right width, whatever the pool."""

from hypothesis import given
from hypothesis import strategies as st

from tests import pools
from tests import streams as s
from tfmemtop.state.pool_views import RegionView, pool_map
from tfmemtop.ui.draw import chunk_map, map_figures
from tfmemtop.ui.draw.lines import width_of
from tfmemtop.ui.draw.palette import ASCII, UNICODE, Glyphs

MIB = 2**20


def region(cells: bytes, number: int = 1, size: int = 256 * MIB, taken_s: float | None = 12.3) -> RegionView:
    return RegionView(number, 4096 * number, 2**30, size, size * 2 // 5, 9, 6, cells, taken_s)


def test_merging_never_turns_mixed_into_full_or_free() -> None:
    assert chunk_map.merge(bytes([255] * 999 + [254]), 1000) == bytes([254])
    assert chunk_map.merge(bytes([0] * 999 + [1]), 1000) == bytes([1])
    assert chunk_map.merge(bytes([255, 255, 0, 0, 7]), 2) == bytes([255, 0, 7])


def test_all_of_a_large_pool_is_shown_in_little_room() -> None:
    view = pool_map(s.fold(pools.watched(pools.doubling(11))), (100, "GPU:0"))
    assert view is not None
    wide = chunk_map.arrange(view.regions, 100, 40)
    assert wide.merged == 1 and sum(len(row.cells) for row in wide.rows) == len(b"".join(r.cells for r in view.regions))
    narrow = chunk_map.arrange(view.regions, 40, 12)
    assert len(narrow.rows) <= 12 and narrow.merged > 1 and narrow.cell_bytes > wide.cell_bytes


def test_once_the_pool_has_grown_the_figures_of_an_older_map_are_blank() -> None:
    view = pool_map(s.fold(pools.watched(pools.doubling(11))), (100, "GPU:0"))
    assert view is not None
    fresh, grown = (
        "".join(part.text for line in map_figures.inside(view, reading, 100, UNICODE) for part in line)
        for reading in (
            s.allocator(9.0, 100, 1, pool=view.read.pool),
            s.allocator(9.0, 100, 1, pool=view.read.pool + 1),
        )
    )
    assert "—" not in fresh and "largest free —  fragmented —" in grown


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
    labels = chunk_map.region_labels(found, width, kind, chosen), chunk_map.offset_label
    lines = [
        line
        for label in labels
        for line in chunk_map.draw(
            arranged, width, range(top, top + height), kind, label, lambda row: chunk_map.draw_cells(row.cells, kind)
        )
    ]
    lines += chunk_map.strip(found, width, height, kind)[0]
    assert {width_of(line) for line in lines} <= {width}
    for one in found:
        assert width_of(map_figures.region_line(one, width, kind)) <= width
