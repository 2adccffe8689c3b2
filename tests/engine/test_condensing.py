"""A map that is made of a copied pool: all its parts agree, however the pool is cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfmemtop.engine.sources.chunk_maps import Piece, condense


@given(
    st.lists(st.tuples(st.integers(1, 5000), st.booleans(), st.sampled_from([0, 0, 0, 1 << 20])), min_size=1),
    st.data(),
)
def test_every_part_of_a_map_says_the_same(layout: list[tuple[int, bool, int]], data: st.DataObject) -> None:
    pieces, at = [], 1 << 40
    for units, in_use, gap in layout:
        at += gap
        pieces.append(Piece(at, units * 256, units * 256 - 7, in_use))
        at += units * 256
    starts = data.draw(st.sets(st.sampled_from([piece.address for piece in pieces])))
    found = condense(1, "GPU:0", pieces, starts)
    assert starts <= {region.address for region in found.regions}
    assert len(found.cells) == sum(region.cells for region in found.regions) <= 2048
    for total in ("in_use", "chunks", "chunks_in_use"):
        assert getattr(found, total) == sum(getattr(region, total) for region in found.regions)
    assert found.pool == sum(region.size for region in found.regions) == sum(one.bytes for one in found.bins)
    assert sum(found.sizes) == found.chunks_in_use == sum(one.chunks_in_use for one in found.bins)
    begin = 0
    for region in found.regions:
        own = found.cells[begin : begin + region.cells]
        begin += region.cells
        assert (set(own) == {255}) == (region.in_use == region.size)
        assert (set(own) == {0}) == (region.in_use == 0)
        assert sum(own) / 255 * region.size / len(own) == pytest.approx(region.in_use, abs=region.size / 255 + 256)
