"""The stacked bar: layers add up, small ones stay visible, and the limit is marked at its place."""

from hypothesis import given
from hypothesis import strategies as st

from tfmemtop.ui.draw.bar import apportion

MIB, GIB = 1 << 20, 1 << 30


@given(st.lists(st.integers(0, 1 << 50), min_size=1, max_size=6), st.integers(0, 300))
def test_cells_add_up_and_small_layers_are_seen(sizes: list[int], width: int) -> None:
    cells = apportion(sizes, width)
    assert all(count >= 0 for count in cells)
    assert sum(cells) == (width if sum(sizes) else 0)
    if width >= sum(size > 0 for size in sizes):
        assert all((count > 0) == (size > 0) or count > 0 for count, size in zip(cells, sizes, strict=True) if size)
    assert all(count == 0 for count, size in zip(cells, sizes, strict=True) if not size)
