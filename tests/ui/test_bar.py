"""The stacked bar: layers add up, small ones stay visible, and the limit is marked at its place."""

from hypothesis import given
from hypothesis import strategies as st

from tfmemtop.state.history import History
from tfmemtop.state.views import GPU_LAYERS, DevicePanel, Layer, LayerKind, Share
from tfmemtop.ui.draw.bar import apportion, bar, legend
from tfmemtop.ui.draw.lines import Line, width_of
from tfmemtop.ui.draw.palette import ASCII, UNICODE

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


@given(
    st.lists(st.integers(0, 1 << 45), max_size=5),
    st.none() | st.integers(0, 1 << 45),
    st.none() | st.integers(0, 1 << 45),
    st.integers(0, 200),
)
def test_the_bar_is_as_wide_as_asked(sizes: list[int], capacity: int | None, limit: int | None, width: int) -> None:
    for glyphs in (UNICODE, ASCII):
        assert width_of(bar(panel(*sizes, capacity=capacity, limit=limit), width, glyphs)) == width


def test_the_legend_names_every_layer_and_leaves_out_the_least_needed_first() -> None:
    shown = panel(140 * MIB, 886 * MIB, 608 * MIB, GIB, 137 * GIB, capacity=140 * GIB, limit=4 * GIB)
    wide = text(legend(shown, 140, 1, UNICODE)[0])
    said = "█ in use 140.0M ▓ cached 886.0M ▒ script 608.0M ░ others 1.0G · free 137.0G limit ▏4.0G peak —"
    assert " ".join(wide.split()) == said
    narrow = text(legend(shown, 80, 1, UNICODE)[0])
    assert "cached 886.0M" in narrow and "limit ▏4.0G" in narrow and "free" not in narrow
    assert len(legend(shown, 80, 2, UNICODE)) == 2
