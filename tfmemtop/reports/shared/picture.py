"""The static picture of a run, as SVG: memory over time, and who held it at the highest peak. Pure."""

import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import accumulate

from tfmemtop.findings.holders import nameless
from tfmemtop.reports.holders import end_of_name
from tfmemtop.reports.shared.data import PagePlace, PagePool, PageRun, PageSession
from tfmemtop.reports.shared.windows import is_used
from tfmemtop.safe import safe
from tfmemtop.state.attribution import Kind
from tfmemtop.units import counted, format_bytes, format_duration

_WIDTH, _LEFT, _RIGHT, _HEIGHT = 960, 76, 16, 240  # pixels; the height is that of the graph
_LINE = 20  # pixels
_COLUMNS = 120  # of the verdict
_ROWS, _NAME, _LETTERS = 14, 300, 42  # of the table of holders: rows, pixels and characters of a name
_GROUND, _TEXT, _QUIET, _GRID, _FAILED = "#ffffff", "#1c2330", "#5b6575", "#d5dbe3", "#c0392b"
_LAYERS = {
    **{"in_use": "#009e73", "cached": "#9fd9c3", "outside": "#e69f00", "others": "#a3abb6"},
    **{"jax": "#56b4e9", "pytorch": "#d55e00", "cupy": "#0072b2", "rmm": "#cc79a7"},
}
_CODE = re.compile("`([^`]+)`")
_KINDS = {
    Kind.VARIABLES: "#0072b2",
    Kind.OPTIMIZER: "#cc79a7",
    Kind.GRADIENTS: "#e69f00",
    Kind.ACTIVATIONS: "#56b4e9",
    Kind.LOSS: "#d55e00",
    Kind.INPUT: "#d9c800",
    Kind.WORKSPACE: "#882255",
    Kind.TENSORS: "#117733",
    Kind.XLA: "#999933",
    Kind.RESULTS: "#44aa99",
    Kind.ROUNDING: "#c3c9d2",
    Kind.BEFORE: "#8b94a1",
    Kind.UNKNOWN: "#a3abb6",
}
"""The colours of the page's style, so that a kind looks alike in both."""


def picture(sessions: Sequence[PageSession]) -> str:
    """Return the picture of the last runs of *sessions*, one below the other."""
    parts: list[str] = []
    top = 8
    for session in sessions:
        for height, lines in _parts(session, named=len(sessions) > 1):
            parts += [f'<g transform="translate(0 {top})">', *lines, "</g>"]
            top += height
    title = "; ".join(session.runs[-1].verdict.text if session.runs else session.name for session in sessions)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {top}" width="{_WIDTH}" height="{top}" '
            f'font-family="system-ui, sans-serif" font-size="13" fill="{_TEXT}" role="img">',
            f"<title>{_text(title)}</title>",
            f'<rect width="{_WIDTH}" height="{top}" fill="{_GROUND}"/>',
            *parts,
            "</svg>",
        ]
    )


_Part = tuple[int, Iterable[str]]
"""The height of a part of the picture, and its elements, from the height 0 on."""


def _parts(session: PageSession, *, named: bool) -> Iterator[_Part]:
    run = session.runs[-1] if session.runs else None
    texts = [session.name] if named else []
    texts += textwrap.wrap(safe(run.verdict.text), _COLUMNS) if run else []
    yield _LINE * len(texts) + 8, [_label(8, 13 + _LINE * number, text, bold=True) for number, text in enumerate(texts)]
    for place in _shown(session, run):
        yield _HEIGHT + 4 * _LINE, _graph(place, session, run)
    if run is not None and run.pools and run.pools[0].windows:
        yield _holders(run.pools[0])


def _shown(session: PageSession, run: PageRun | None) -> list[PagePlace]:
    """Return the place of the fullest pool; without a pool, that with the most used memory."""
    keys = [pool.place for pool in run.pools[:1]] if run else []
    found = [place for place in session.places if place.key in keys]
    return found or sorted(session.places, key=lambda place: -max(_sums(place), default=0))[:1]


def _sums(place: PagePlace) -> list[int]:
    return [sum(size or 0 for size in column) for column in zip(*(layer.bytes for layer in place.layers), strict=True)]


def _graph(place: PagePlace, session: PageSession, run: PageRun | None) -> Iterator[str]:
    """Yield the graph of stacked layers, each as high as its highest figure in the stretch of a pixel."""
    wide, span = _WIDTH - _LEFT - _RIGHT, max(session.ended, 0.1)
    base = _LINE + _HEIGHT
    columns: dict[int, list[int]] = {}
    for t, *sizes in zip(place.times, *(layer.bytes for layer in place.layers), strict=True):
        ends = list(accumulate(size or 0 for size in sizes))
        x = min(wide, round(t / span * wide))
        columns[x] = [*map(max, columns[x], ends)] if x in columns else ends
    highest = max((ends[-1] for ends in columns.values()), default=0) or 1
    yield _label(8, 13, f"{place.name} {place.model}".strip())
    step = _grid_step(highest)
    for size in range(0, highest + 1, step):
        y = base - _HEIGHT * size / highest
        yield f'<path d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}" stroke="{_GRID}"/>'
        yield _label(_LEFT - 6, y + 4, format_bytes(size), anchor="end", colour=_QUIET)
    for number, layer in reversed(list(enumerate(place.layers))):
        path = [f"M{_LEFT} {base}"]
        for x, ends in columns.items():
            path.append(f"H{_LEFT + x}V{base - _HEIGHT * ends[number] / highest:.1f}")
        yield f'<path d="{"".join(path)}H{_LEFT + wide}V{base}Z" fill="{_LAYERS[layer.key]}"/>'
    for failed in run.failures if run else ():
        x = _LEFT + failed / span * wide
        yield f'<path d="M{x:.1f} {_LINE}V{base}" stroke="{_FAILED}" stroke-width="2"/>'
    for part in range(5):
        x = _LEFT + wide * part / 4
        anchor = "start" if part == 0 else "end" if part == 4 else "middle"
        yield _label(x, base + 16, format_duration(span * part / 4), anchor=anchor, colour=_QUIET)
    yield from _legend(_LEFT, base + 26, [(_LAYERS[layer.key], layer.name) for layer in place.layers])


def _grid_step(highest: int) -> int:
    """Return the power of two between two lines of the grid, of which there are two to five."""
    return max(1, 1 << max(0, (highest // 2).bit_length() - 1))


def _holders(pool: PagePool) -> _Part:
    """Return the largest rows of the table by layer, each as a bar of its kinds."""
    window = pool.windows[pool.shown]
    rows: dict[str, Counter[str]] = {}
    for place, size in enumerate(window.bytes):
        if is_used(window, place, window.peak_at):
            owner = pool.owners[window.owner[place]]
            rows.setdefault(owner.layer or nameless(Kind(owner.kind)), Counter())[owner.kind] += size
    if window.unknown:
        rows.setdefault(nameless(Kind.UNKNOWN), Counter())[Kind.UNKNOWN.value] += window.unknown
    ordered = sorted(rows.items(), key=lambda row: (-row[1].total(), row[0]))
    shown, rest = ordered[:_ROWS], ordered[_ROWS:]
    title = f"{pool.device} at the peak of {window.title}: {format_bytes(window.peak)}"
    parts = [_label(8, 13, title), *_bars(shown)]
    y = _LINE * (len(shown) + 1) + 6
    if rest:
        more = f"{counted(len(rest), 'smaller row')}, {format_bytes(sum(kinds.total() for _, kinds in rest))}"
        parts.append(_label(_NAME, y + 12, more, colour=_QUIET))
        y += _LINE
    there = [of for of in _KINDS if any(kinds[of.value] for _, kinds in ordered)]
    return y + 2 * _LINE, [*parts, *_legend(8, y + 10, [(_KINDS[of], of.value) for of in there])]


def _bars(rows: Sequence[tuple[str, Counter[str]]]) -> Iterator[str]:
    largest = max((kinds.total() for _, kinds in rows), default=0) or 1
    for number, (name, kinds) in enumerate(rows, 1):
        y, x = _LINE * number + 6, float(_NAME)
        yield _label(_NAME - 8, y + 12, end_of_name(name, _LETTERS), anchor="end")
        for kind, size in kinds.most_common():
            width = (_WIDTH - _NAME - 110) * size / largest
            yield f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="15" fill="{_KINDS[Kind(kind)]}"/>'
            x += width
        yield _label(x + 6, y + 12, format_bytes(kinds.total()), colour=_QUIET)


def _legend(x: int, y: int, entries: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield a square of each colour, and the name beside it."""
    for colour, name in entries:
        yield f'<rect x="{x}" y="{y}" width="11" height="11" fill="{colour}"/>'
        yield _label(x + 16, y + 10, name)
        x += 32 + 7 * len(name)


def _label(x: float, y: float, text: str, *, anchor: str = "start", colour: str = _TEXT, bold: bool = False) -> str:
    weight = ' font-weight="600"' if bold else ""
    drawn = _CODE.sub(r'<tspan font-family="monospace">\1</tspan>', _text(text)) if bold else _text(text)
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="{colour}"{weight}>{drawn}</text>'


def _text(text: str) -> str:
    return escape(safe(text))
