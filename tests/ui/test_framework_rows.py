"""The rows, the bar and the legend of JAX, PyTorch, CuPy and RMM."""

import pytest
from rich.segment import Segment

from tests.state.test_frameworks import OTHERS, TENSORFLOW, seen, the_panel
from tfmemtop.state.pool_views import allocators
from tfmemtop.ui.draw.bar import bar, legend, shared_legend
from tfmemtop.ui.draw.palette import ASCII, UNICODE, Glyphs
from tfmemtop.ui.panels.allocator_panel import allocator_table

GLYPHS = pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])


def text(line: list[Segment]) -> str:
    return "".join(segment.text for segment in line)


@GLYPHS
def test_each_row_has_its_whole_name_and_its_own_figures(glyphs: Glyphs) -> None:
    heading, *rows = map(text, allocator_table(allocators(seen(TENSORFLOW, OTHERS)), 100, 8, glyphs))
    assert heading.split()[:3] == ["DEVICE", "IN", "USE"] and "GPU" not in heading.split()
    names = [row.split()[0] for row in rows]
    assert names == ["GPU:0", "JAX:0", "PyTorch:0", "CuPy:0", "RMM:0"]
    assert rows[2].split()[1:5] == ["512.0M", "512.0M", "2.0M", "514.0M"]


def test_without_them_the_columns_are_as_narrow_as_before() -> None:
    heading = text(allocator_table(allocators(seen(TENSORFLOW)), 100, 8, UNICODE)[0])
    assert heading.startswith(" DEVICE  IN USE ")


@GLYPHS
def test_each_has_cells_of_its_own_in_the_bar_and_a_word_in_the_legend(glyphs: Glyphs) -> None:
    panel = the_panel(seen(TENSORFLOW, OTHERS, total=100 << 30))
    cells = text(bar(panel, 400, glyphs))
    words = "\n".join(map(text, legend(panel, 120, 4, glyphs)))
    for kind, name in [("jax", "JAX"), ("pytorch", "PyTorch"), ("cupy", "CuPy"), ("rmm", "RMM")]:
        assert glyphs.fill[kind] in cells and f"{glyphs.fill[kind]} {name}" in words


def test_a_legend_of_several_bars_names_only_those_that_are_there() -> None:
    plain, full = the_panel(seen(TENSORFLOW)), the_panel(seen(TENSORFLOW, OTHERS))
    assert "JAX" not in text(shared_legend([plain, plain], UNICODE, 120))
    assert "JAX" in text(shared_legend([plain, full], UNICODE, 120))
