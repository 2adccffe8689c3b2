"""The history graph of a device: a stacked area over time. From the data to the screen it takes four steps.

- data: a history has bytes over time (``state/history.py``);
- columns: what the two halves of each column of cells show, the highest of its time (:class:`Reader`);
- layers: how high each of its sizes is on the scale (``scale.py``);
- cells: the characters of each column, and their colours (``braille.py``).

A column begins at a multiple of its width in time. Once it is complete it never changes: it is read and painted once,
and from then on only moves left. So a frame costs the same however long the session is.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from statistics import median

import msgspec
from msgspec.structs import replace
from rich.cells import cell_len

from tfmemtop.reports.settings import in_effect
from tfmemtop.safe import safe
from tfmemtop.state import State
from tfmemtop.state.figures import effective_settings
from tfmemtop.state.history import History, Sample
from tfmemtop.state.lookup import once_per_revision
from tfmemtop.state.views import DevicePanel, PhaseMark, at_moment
from tfmemtop.ui.draw.braille import STYLES, Column, Look, joined, painted
from tfmemtop.ui.draw.glyphs import FAILED_MARK, MARK, TICK, UP
from tfmemtop.ui.draw.lines import Line, styled
from tfmemtop.ui.draw.scale import GUTTER, Places, Scale, ScaleChoice, axis, gutters, label_places, scale
from tfmemtop.ui.draw.window import FOLD, FOLD_CELLS, Window
from tfmemtop.units import format_duration, format_short

Halves = tuple[Sample | None, Sample | None]
"""What the left and the right half of a column show."""

_NO_GUTTER_BELOW = 32
_AFTER_A_RUN = 9  # cells that the name of a run takes
_ROOM = " mcro"  # the codes of cells that a phase's name may take: a full pool would leave its highest peak unnamed
_BARE = f"{MARK}   "  # many marks without a name side by side would tell nothing
_ASIDE = 7  # cells by which a label moves aside for a more important one


class Mark(msgspec.Struct, frozen=True):
    """A moment to be marked: ``t`` in session seconds, its name, and what follows the name where there is room."""

    t: float
    name: str
    more: str = ""


def area_cells(width: int) -> int:
    """Return how many cells of a graph of *width* cells are columns; the others have the figures of its scale."""
    return width - GUTTER if width >= _NO_GUTTER_BELOW else width


def steps_top_s(steps: Sequence[float | None]) -> float:
    """Return the seconds at the top of the line of the steps' time: about twice the median of *steps*, 0 if none.

    The first step is often a hundred times as long as the others, whose changes would not be seen below it.
    """
    known = [one for one in steps if one]
    if not known:
        return 0.0
    least = 2 * median(known)
    unit = 10.0 ** math.floor(math.log10(least))
    return next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= least)


class Graph:
    """One device's graph. It keeps the columns that are complete, and the scale, so that that seldom changes."""

    def __init__(self, braille: bool = True) -> None:
        self._braille = braille
        self._reader = Reader()
        self._scale: Scale | None = None

    def at(self, panel: DevicePanel, window: Window, t: float, width: int) -> DevicePanel:
        """Return *panel* with the highest figures of the column that contains session second *t*."""
        cells = area_cells(width)
        halves = self._halves(panel, window, cells).get(History.newest_column(window.column_s(cells), t), ())
        samples = [sample for sample in halves if sample]
        return at_moment(panel, t, tuple(map(max, zip(*samples, strict=True))))

    def _halves(self, panel: DevicePanel, window: Window, cells: int) -> dict[int, Halves]:
        history = panel.whole.history if window.closed and panel.whole else panel.history
        return self._reader.read(history, window, cells)

    def build(
        self,
        panel: DevicePanel,
        window: Window,
        began: Sequence[Mark],
        choice: ScaleChoice,
        width: int,
        height: int,
        steps: Sequence[float | None] | None = None,
    ) -> list[Line]:
        """Return *height* lines of *width* cells: the area of *window*, and below it the axis with its labels.

        *began* are the starts of runs. *steps* are the seconds of a step in each half of a column, ``None`` if they are
        not to be drawn. With a height of less than two lines, nothing is returned.
        """
        cells, rows = area_cells(width), height - 1
        if cells < 1 or rows < 1:
            return []
        gutter = cells < width
        halves = self._halves(panel, window, cells)
        samples = [sample for column in halves.values() for sample in column if sample]
        in_use, highest = (max((sample[layer] for sample in samples), default=0) for layer in (0, -1))
        whole = max(panel.capacity, highest) if panel.capacity else None  # an earlier run's limit may have been larger
        self._scale = scale(choice, in_use, highest, whole, self._scale)
        look = Look(self._braille, panel.kinds, rows, self._scale)
        columns = _columns(panel, window, cells, began, halves)
        if steps is not None:
            dots = [*_steps_line(steps, rows * 4), range(0)]  # the second half of the newest column may not have begun
            pairs = zip(columns, dots[::2], dots[1::2], strict=False)
            columns = [replace(column, steps=(left, right)) for column, left, right in pairs]
        columns += [Column()] * (cells - len(columns))  # the future
        lines = _with_texts(_area(columns, look), columns, look, _note(panel, self._scale))
        row = 1 if "l" in lines[0][1] and rows > 2 else 0  # below the line of the limit
        lines[row] = _with_phases(*lines[row], panel.phases, window.column_s(cells), list(halves))
        left = gutters(self._scale.figures(rows), rows) if gutter else [[]] * rows
        area = [[*figure, *styled(*line, STYLES)] for figure, line in zip(left, lines, strict=True)]
        return [*area, _axis(panel, window, began, look, list(halves), cells, gutter)]


class Reader:
    """Reads a history by columns. Those that are complete are not read again."""

    def __init__(self) -> None:
        self._of: tuple[object, ...] = ()
        self._complete: dict[int, Halves] = {}

    def read(self, history: History, window: Window, cells: int) -> dict[int, Halves]:
        """Return the columns that *window* shows in *cells* cells, by number, oldest first."""
        half_s = window.column_s(cells) / 2
        newest = history.newest_column(half_s, window.until)
        if self._of != (of := (history, half_s, cells, window.start)):
            self._of, self._complete = of, {}
        found: dict[int, Halves] = {}
        for piece in window.columns(cells):
            unread = next((number for number in piece if number not in self._complete), piece.stop)
            found |= {number: self._complete[number] for number in range(piece.start, unread)}
            if unread < piece.stop:
                reach_s = max(window.span_s, window.until - unread * 2 * half_s)
                samples = history.read(reach_s, half_s, unread * 2, piece.stop * 2, window.start or 0.0)
                found |= enumerate(zip(samples[::2], samples[1::2], strict=True), unread)
        if newest % 2 == 0 and newest // 2 in found:
            found[newest // 2] = found[newest // 2][0], None  # the second half has not begun
        complete = history.complete_before(window.span_s, half_s, window.until) // 2
        self._complete = {number: column for number, column in found.items() if window.closed or number < complete}
        return found


def _columns(
    panel: DevicePanel, window: Window, cells: int, began: Sequence[Mark], halves: dict[int, Halves]
) -> list[Column]:
    """Return *halves* with what else their columns show."""

    def numbers(times: Iterable[float]) -> set[int]:
        return {History.newest_column(window.column_s(cells), min(t, window.until)) for t in times}

    begun, ran_out = numbers(mark.t for mark in began), numbers(panel.ran_out)
    cursor = numbers([] if panel.moment is None else [panel.moment])
    since = [History.newest_column(window.column_s(cells), limit.since) for limit in panel.limits]
    columns = []
    for number, samples in halves.items():
        at = bisect_right(since, number)
        limit = panel.limits[at - 1].size if at else None
        columns.append(Column(samples, limit, number in begun, number in ran_out, number in cursor))
    return columns


def _steps_line(steps: Sequence[float | None], units: int) -> list[range]:
    """Return the dots, of *units* from the bottom, of a line through *steps*, joined from each value to the next."""
    top_s = steps_top_s(steps)
    dots = [None if one is None else min(units - 1, int(one / top_s * units)) for one in steps]
    return joined(dots)


def _area(columns: Sequence[Column], look: Look) -> list[tuple[str, str]]:
    """Return the rows of *columns*, top first: the characters, and the codes of their styles."""
    texts, codes = zip(*(painted(column, look) for column in columns), strict=True)
    rows = ([*map("".join, zip(*each, strict=True))] for each in (texts, codes))
    return list(zip(*rows, strict=True))


def _with_texts(
    lines: list[tuple[str, str]], columns: Sequence[Column], look: Look, note: list[tuple[str, str]]
) -> list[tuple[str, str]]:
    """Return *lines* with the name of each limit on its line, and *note* in the first row, where nothing is drawn."""
    for limit in {column.limit for column in columns} - {None}:
        if limit is not None and (place := look.limit_cell(limit)):
            row, cell = place
            name = f" limit {format_short(limit)} "
            text, codes = lines[row]
            if (at := text.find(cell * (len(name) + 1))) >= 0:
                lines[row] = text[: at + 1] + name + text[at + 1 + len(name) :], codes
    text, codes = lines[0]
    said = "".join(part for part, _ in note)
    for at in (len(text) - len(said), 0) if 0 < len(said) <= len(text) else ():
        if not codes[at : at + len(said)].strip(" m"):
            looks = "".join(code * len(part) for part, code in note)
            lines[0] = text[:at] + said + text[at + len(said) :], codes[:at] + looks + codes[at + len(said) :]
            break
    return lines


def _with_phases(
    text: str, codes: str, phases: Sequence[PhaseMark], column_s: float, numbers: Sequence[int]
) -> tuple[str, str]:
    """Return a row, *text* and *codes*, with the beginnings of *phases*, and of times without, where nothing is in use.

    Each has its name and its peak, if there is room: the one with the highest peak comes first. *numbers* are those of
    the columns.
    """
    for phase in sorted(phases, key=lambda each: -each.peak):
        number = History.newest_column(column_s, phase.began)
        if not numbers or number < numbers[0]:
            continue
        at, label = bisect_left(numbers, number), safe(phase.label)
        narrow = f"{MARK}{label} " if all(cell_len(each) == 1 for each in label) else MARK
        for said in (f"{narrow}{format_short(phase.peak)} ", narrow, _BARE) if label else (_BARE,):
            end = at + len(said)
            if end <= len(text) and not codes[max(0, at - 1) : end].strip(_ROOM):
                text, codes = text[:at] + said + text[end:], codes[:at] + "n" * len(said) + codes[end:]
                break
    return text, codes


def _note(panel: DevicePanel, scale: Scale) -> list[tuple[str, str]]:
    """Return what lies above the top of *scale*, as texts with the codes of their styles."""
    limit = panel.limits[-1].size if panel.limits else None
    parts = []
    if scale.whole is not None and scale.top < scale.whole:
        if limit is not None and scale.top < limit != scale.whole:
            parts.append((f"{UP} limit {format_short(limit)}  ", "l"))
        whole = "card" if panel.gpu else "limit" if panel.capacity == limit else "host"
        parts.append((f"{UP} {whole} {format_short(scale.whole)}", "n"))
    return parts


def _axis(
    panel: DevicePanel,
    window: Window,
    began: Sequence[Mark],
    look: Look,
    numbers: Sequence[int],
    cells: int,
    gutter: bool,
) -> Line:
    """Return the line under the area: its time span, its scale, where runs began and where memory ran out.

    *numbers* are those of its columns.
    """
    scale = look.scale
    column_s = window.column_s(cells)

    def cell(number: int) -> int:
        return bisect_left(numbers, number) if not numbers or number >= numbers[0] else -1

    def places(t: float, tick: str, name: str) -> Places:
        return label_places(cell(History.newest_column(column_s, t)), tick, name)

    runs = [places(mark.t, TICK, mark.name) for mark in began]
    folds = [(fold, pause_s) for fold, pause_s in window.folds(cells) if numbers and fold.start > numbers[0]]
    for fold, pause_s in folds:
        at, name = cell(fold.start) - FOLD_CELLS, f" {format_duration(pause_s)} {FOLD}"
        runs.append(((at + len(FOLD) - len(name), name), (at, FOLD)))
    span = " of runs" if folds else ""
    left, right = (f"{window.left}{span}", window.right) if window.left else ("", f"{window.right}{span}")
    end = cells - len(right) - 2
    ends: list[Places] = [((1, f" {left} "), (_AFTER_A_RUN, f" {left} "))] if left else []
    taken = {at + cell for (at, text), *_ in runs for cell in range(len(text))}
    text = f" {scale.text} "
    scales = [(end - len(text) - 1 - aside, text) for aside in range(0, cells, _ASIDE)]
    scales.sort(key=lambda place: not taken.isdisjoint(range(place[0], place[0] + len(place[1]))))
    labels: list[Places] = [((end, f" {right} "),), tuple(scales)]
    begins = [first for (first, _), *_ in runs[: len(began)] if first >= 0]
    for place, mark in enumerate(began):
        first, full = runs[place][0][0], f"{TICK}{mark.name}{mark.more} "
        after = min((begin for begin in begins if begin > first), default=cells)
        if len(begins) > 1 and first + len(full) < after:
            runs[place] = ((first, full), *runs[place])
    labels += [*ends, *runs] if window.start is None and not folds else [*runs, *ends]
    if panel.moment is not None:
        at = cell(History.newest_column(column_s, panel.moment))
        labels.insert(0, ((at, TICK),))
    failures = [places(t, FAILED_MARK, "out of memory") for t in panel.ran_out]
    return axis(cells, labels, failures, bottom=scale.bottom_figure if gutter else None)


@once_per_revision
def run_starts(state: State) -> list[Mark]:
    """Return the starts of runs, with what differs between the runs' settings."""
    effects = [effective_settings(run) for run in state.runs]
    settings = [in_effect(effect, usual=False) for effect in effects]
    settled = [set(parts) for parts, effect in zip(settings, effects, strict=True) if effect.settled]
    alike = set.intersection(*settled) if settled else set()
    return [
        Mark(run.started, f"run {run.run}", "".join(f" {part}" for part in parts if part not in alike))
        for run, parts in zip(state.runs, settings, strict=True)
    ]
