"""The columns of every table: which of them fit, their heading and cells, and rows in the order of one. Pure."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

import msgspec
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from tfmemtop.ui.draw.lines import Line, fit
from tfmemtop.ui.draw.palette import BOLD, PLAIN
from tfmemtop.units import UNKNOWN

R = TypeVar("R")
Item = TypeVar("Item")

_SORTED = Style(bold=True, reverse=True)


class Column(msgspec.Struct, Generic[R], frozen=True):
    """A column: ``value`` returns a row's value, ``None`` if it is unknown, and ``show`` its text.

    When the table is narrow, the column with the lowest ``priority`` is left out first. Rows are sorted by ``key``, or
    else by the value; ``falling``: the natural order begins with the highest. ``of``: what it is
    about, if some sessions have none of it.
    """

    name: str
    width: int
    priority: int
    value: Callable[[R], Any]
    show: Callable[[Any], str | None] = str
    style: Style = PLAIN
    key: Callable[[R], Any] | None = None
    left: bool = False
    falling: bool = True
    of: str = ""

    def text(self, row: R) -> str | None:
        """Return what is shown of *row*; ``None`` if it is unknown."""
        value = self.value(row)
        return None if value is None else self.show(value) or None

    def pad(self, text: str | None, room: int = 0) -> str:
        """Return *text*, or a dash, in exactly *room* cells, or else in the column's width."""
        room = room or self.width
        if text is None:
            text = UNKNOWN  # one cell wide: nothing to fit
        elif not text.isascii() or len(text) > room:
            text = fit(text, room)
            blanks = " " * (room - cell_len(text))
            return text + blanks if self.left else blanks + text
        return text.ljust(room) if self.left else text.rjust(room)


def fitting(
    items: Iterable[Item], room: int, cells: Callable[[Item], int], worth: Callable[[Item], int], least: int = 1
) -> list[Item]:
    """Return those of *items* that fit in *room* cells. The ones of the lowest worth are left out, *least* stay."""
    shown = list(items)
    while len(shown) > least and sum(map(cells, shown)) > room:
        shown.remove(min(shown, key=worth))
    return shown


def fitting_columns(columns: Iterable[Column[R]], room: int, least: int = 1) -> list[Column[R]]:
    """Return those of *columns* that fit in *room* cells, each with a blank beside it; *least* stay."""
    return fitting(columns, room, cells_of, lambda column: column.priority, least)


def cells_of(column: Column[Any]) -> int:
    """Return the cells that *column* takes with the blank beside it."""
    return column.width + 1


def names(columns: Iterable[Column[R]]) -> str:
    """Return the names of *columns*, each above its figures."""
    return " ".join(f"{one.name:<{one.width}}" if one.left else f"{one.name:>{one.width}}" for one in columns)


def figures(columns: Iterable[Column[R]], row: R) -> str:
    """Return what *columns* show of *row*."""
    return " ".join(column.pad(column.text(row)) for column in columns)


class Layout(msgspec.Struct, Generic[R], frozen=True):
    """The columns that fit, each with the cell it begins at and its width."""

    columns: tuple[tuple[Column[R], int, int], ...] = ()

    def at(self, x: int) -> str | None:
        """Return the name of the column at cell *x*; the blank before a column belongs to it."""
        return next((one.name for one, start, width in self.columns if start - 1 <= x < start + width), None)

    def names(self, order: "Order") -> Line:
        """Return the line with the columns' names, that of *order* marked."""
        line: Line = []
        x = 0
        for column, start, width in self.columns:
            style = _SORTED if column.name == order.column else BOLD
            name = [Segment(column.name[:width], style)]
            blank = [Segment(" " * (width - len(column.name)))]
            line += [Segment(" " * (start - x)), *(name + blank if column.left else blank + name)]
            x = start + width
        return line


def side_by_side(columns: Iterable[tuple[Column[R], int]], x: int) -> Layout[R]:
    """Return *columns*, each with its width, from cell *x* on, with a blank between two."""
    places = []
    for column, width in columns:
        places.append((column, x, width))
        x += width + 1
    return Layout(tuple(places))


class Order(msgspec.Struct, frozen=True):
    """How rows are sorted: by which of the *columns*, and whether against its natural order."""

    columns: Sequence[Column[Any]]
    column: str
    inverted: bool = False

    def step(self, count: int) -> "Order":
        """Return the order by the column *count* places further to the right, in its natural order."""
        names = [column.name for column in self.columns]
        return Order(self.columns, names[(names.index(self.column) + count) % len(names)])

    def by(self, column: str) -> "Order":
        """Return the order by *column*; if that is the present column, in the opposite direction."""
        return Order(self.columns, column, not self.inverted if column == self.column else False)

    @property
    def _sorted(self) -> Column[Any]:
        return next(column for column in self.columns if column.name == self.column)

    @property
    def falling(self) -> bool:
        """Whether the highest come first."""
        return self._sorted.falling != self.inverted

    def sort(self, rows: Iterable[R]) -> list[R]:
        """Return *rows* in this order. Unknown values come last in both directions."""
        key = self._sorted.key or self._sorted.value
        rows = list(rows)
        known = sorted((row for row in rows if key(row) is not None), key=key, reverse=self.falling)
        return known + [row for row in rows if key(row) is None]
