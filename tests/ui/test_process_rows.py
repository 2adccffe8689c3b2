"""Rows of the tables of processes and of allocators, and bars with their legend: order, width, and what is there."""

import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.state.test_frameworks import OTHERS, TENSORFLOW, seen, the_panel
from tests.streams import allocator, device, device_reading, effective, fold, hook, session
from tests.ui.process_data import crowd
from tests.ui.shown import line_text as text
from tfmemtop import events
from tfmemtop.charset import to_ascii
from tfmemtop.safe import safe as harmless
from tfmemtop.state.model import ProcessState
from tfmemtop.state.pool_views import allocators
from tfmemtop.state.process_rows import ProcessRow, processes
from tfmemtop.ui.draw.bar import apportion, bar, legend
from tfmemtop.ui.draw.glyphs import FILL
from tfmemtop.ui.draw.text import chop, wrap
from tfmemtop.ui.panels.allocator_panel import allocator_table
from tfmemtop.ui.panels.process_rows import COLUMNS, Cursor, TreeRow, lay_out, process_order, row_line, sort, tree

CROWD = processes(crowd())


def names(width: int, gpus: bool = True) -> list[str]:
    return [column.name for column, _, _ in lay_out(width, gpus).columns]


def a_row(pid: int, ppid: int = 1, gpu: int | None = None, command: str = "x") -> ProcessRow:
    """Return the row of a process of which only its place is known: it is on *gpu*, or on none."""
    state = fold(
        [
            session(),
            *(device(index) for index in range(3)),
            *([device_reading(2.0, index=gpu, held={pid: None})] if gpu is not None else []),
        ]
    )
    told = events.Process(t=1.0, pid=pid, ppid=ppid, user="u", command=[command], started=0.0, run=None)
    return ProcessRow(state, ProcessState(told), gpu)


def test_an_unknown_figure_is_a_dash_and_a_zero_is_a_zero() -> None:
    layout = lay_out(160)
    unknown = text(row_line(TreeRow(a_row(7)), layout, cursor=Cursor.NONE, tagged=False))
    assert unknown.split() == ["—", "7", "u", *"—" * 9, "x"]
    nothing = [
        session(),
        device(0),
        hook(1.0, 7),
        device_reading(2.0, index=0, held={7: 0}),
        effective(2.0, 7),
        allocator(2.0, 7, 0, 0, None),
    ]
    (zeros,) = processes(fold(nothing))
    assert text(row_line(TreeRow(zeros), layout, cursor=Cursor.NONE, tagged=False)).split().count("0B") == 3


@pytest.mark.parametrize("cursor", [Cursor.NONE, Cursor.HERE])
def test_marks_tell_tagged_ended_and_hooked_out(cursor: Cursor) -> None:
    shown = {row.pid: text(row_line(TreeRow(row), lay_out(160), cursor=cursor, tagged=True)) for row in CROWD}
    assert shown[100].startswith("+● ")
    assert shown[107].startswith("+■ ") and " ended " in shown[107]
    assert shown[114].startswith("+! ")
    assert shown[121].startswith("+· ")
    assert shown[170].startswith("+  ")


@given(st.sampled_from([column.name for column in COLUMNS]), st.booleans())
def test_unknown_values_come_last_in_both_directions(name: str, inverted: bool) -> None:
    column = next(column for column in COLUMNS if column.name == name)
    ordered = sort(CROWD, process_order(name, inverted))
    assert sorted(row.pid for row in ordered) == sorted(row.pid for row in CROWD)
    keys = [column.value(row) for row in ordered]
    known = [key for key in keys if key is not None]
    assert keys[: len(known)] == known
    assert known == sorted(known, reverse=process_order(name, inverted).falling)


def test_the_tree_hangs_children_under_their_parents() -> None:
    rows = [a_row(1, 0), a_row(5, 1), a_row(9, 5), a_row(6, 1), a_row(6, 1, gpu=2), a_row(3, 77)]
    placed = [(item.row.pid, item.branches) for item in tree(rows)]
    assert placed == [(1, ""), (5, "├─ "), (9, "│  └─ "), (6, "└─ "), (6, "   "), (3, "")]


@given(st.lists(st.tuples(st.integers(1, 12), st.integers(0, 12)), max_size=30))
def test_a_tree_shows_every_row_once_even_where_parents_form_a_ring(links: list[tuple[int, int]]) -> None:
    rows = [a_row(pid, ppid) for pid, ppid in links]
    assert sorted(item.row.pid for item in tree(rows)) == sorted(pid for pid, _ in links)


@given(st.text(), st.integers(1, 40))
@example("a\x1b[31m\r\n\x00\u202e\u200b\x9b2J", 4)
def test_text_from_outside_is_harmless_and_fits(told: str, width: int) -> None:
    safe = harmless(told)
    assert all(character.isprintable() or unicodedata.category(character) == "Co" for character in safe)
    for line in [*wrap(safe, width), *wrap(safe, width, "  "), *chop(safe, width, "  ")]:
        assert cell_len(line) <= max(width, 4)
    assert "".join(wrap(safe, width)).replace(" ", "") == "".join(safe.split())


def test_each_row_has_its_whole_name_and_its_own_figures() -> None:
    heading, *rows = map(text, allocator_table(allocators(seen(TENSORFLOW, OTHERS)), 100, 8))
    assert heading.split()[:3] == ["DEVICE", "IN", "USE"] and "GPU" not in heading.split()
    names = [row.split()[0] for row in rows]
    assert names == ["GPU:0", "JAX:0", "PyTorch:0", "CuPy:0", "RMM:0"]
    assert rows[2].split()[1:5] == ["512.0M", "512.0M", "2.0M", "514.0M"]


@pytest.mark.parametrize("drawn", [str, to_ascii], ids=["unicode", "ascii"])
def test_each_has_cells_of_its_own_in_the_bar_and_a_word_in_the_legend(drawn: Callable[[str], str]) -> None:
    panel = the_panel(seen(TENSORFLOW, OTHERS, total=100 << 30))
    cells = drawn(text(bar(panel, 400, False)))
    words = drawn("\n".join(map(text, legend(panel, 120, 4))))
    for kind, name in [("jax", "JAX"), ("pytorch", "PyTorch"), ("cupy", "CuPy"), ("rmm", "RMM")]:
        assert drawn(FILL[kind]) in cells and f"{drawn(FILL[kind])} {name}" in words


MIB, GIB = 1 << 20, 1 << 30


@given(st.lists(st.integers(0, 1 << 50), min_size=1, max_size=6), st.integers(0, 300))
def test_cells_add_up_and_small_layers_are_seen(sizes: list[int], width: int) -> None:
    cells = apportion(sizes, width)
    assert all(count >= 0 for count in cells)
    assert sum(cells) == (width if sum(sizes) else 0)
    if width >= sum(size > 0 for size in sizes):
        assert all((count > 0) == (size > 0) or count > 0 for count, size in zip(cells, sizes, strict=True) if size)
    assert all(count == 0 for count, size in zip(cells, sizes, strict=True) if not size)
