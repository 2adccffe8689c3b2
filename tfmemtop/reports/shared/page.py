"""The page: what is collected of each session while its recording is folded, how several differ, and the file. Pure.

The file is plain HTML that says what matters without scripts, the data, and the script that draws it.
"""

import base64
import gzip
import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from importlib.resources import files
from typing import Any

import msgspec

from tfmemtop import __version__
from tfmemtop.events import Event
from tfmemtop.findings.holders import holder, windowless_text
from tfmemtop.findings.missing import unused_probe
from tfmemtop.findings.probe import why_unused
from tfmemtop.findings.review import reviews
from tfmemtop.placement import where
from tfmemtop.reports import ranks as of_ranks
from tfmemtop.reports.comparison_text import changed, differences, name, rows, sentences
from tfmemtop.reports.holders import not_recorded
from tfmemtop.reports.rank_differences import differences as differences_of_ranks
from tfmemtop.reports.shared.data import PageComparison, PageData, PageDifference, PageRow, PageRun, PageSession
from tfmemtop.reports.shared.picture import picture
from tfmemtop.reports.shared.places import COLUMNS, places
from tfmemtop.reports.shared.runs import ROOM, page_run, reduced
from tfmemtop.safe import safe
from tfmemtop.state import State
from tfmemtop.state.holder_views import standing_at_peak
from tfmemtop.state.holders import Standing
from tfmemtop.state.ranks import Rank, lay, of_one_job
from tfmemtop.state.windows import chosen, missing
from tfmemtop.units import counted


def page_session(
    name: str, stream: Iterable[Event], number: int | None, look_s: float, *, alive: bool, beside: int = 0
) -> tuple[PageSession, State]:
    """Return the session called *name* with the events *stream*, up to its run *number*, and the state at its end.

    The more sessions are *beside* it on the page, the less of it is shown.
    """
    runs: list[PageRun] = []
    state = State()
    for seen in reviews(stream, look_s, alive=alive, state=state):
        if (run := page_run(seen)) is not None:
            runs[-1:] = map(reduced, runs[-1:])
            runs.append(run)
        if number is not None and state.run is not None and state.run.run >= number:
            break
    if beside:
        runs[-1:] = [reduced(run, ROOM // (1 + beside)) for run in runs[-1:]]
    began = state.session
    placement = began.placement if began else None
    return PageSession(
        name=name,
        placement=where(placement) if placement and placement.among_others else "",
        began=began.started if began else 0.0,
        ended=state.now,
        places=places(state, COLUMNS // (1 + beside)),
        runs=runs,
        notes=list(_notes(state)),
    ), state


def _notes(state: State) -> Iterator[str]:
    """Yield what is missing of the last run."""
    run = state.run
    if run is None:
        yield "No program was started in this session."
        return
    why = windowless_text(missing(state)) or why_unused(unused_probe(state))
    if not chosen(state) and (why or run.peaks):
        yield not_recorded(why)
    if run.dropped:
        yield f"{counted(run.dropped, 'reading')} could not be sent without making the script wait, and are missing."
    if run.unread:
        yield "The last moments of a process are missing."


def page_data(sessions: list[PageSession], comparison: PageComparison | None) -> PageData:
    """Return the page of *sessions*."""
    return PageData(tfmemtop=__version__, sessions=sessions, comparison=comparison)


_DIFFERENCES = 40
"""The most allocations in which sessions differ."""


def page_comparison(ranks: Sequence[Rank], states: Sequence[State]) -> PageComparison:
    """Return the comparison of the last runs of two sessions or more, with their *states*."""
    holders = [standing_at_peak(state) for state in states]
    known = [one for one in holders if one is not None]
    found = _differences(known) if len(known) == len(holders) else []
    if len(ranks) > 2 or of_one_job(*ranks):
        laid = lay(ranks)
        columns = [of_ranks.cells(rank) for rank in ranks]
        shown = [_row(label.lower(), values) for label, *values in [*zip(of_ranks.HEADINGS, *columns, strict=True)][1:]]
        text = of_ranks.sentences(laid, differences_of_ranks(laid), of_ranks.missing(ranks))
        return PageComparison(
            title=of_ranks.heading(laid).removesuffix(":"), rows=_sorted(shown), differences=found, text=text
        )
    one, other = (rank.figures for rank in ranks)
    text = [*sentences(one, other), *(changed(*known) if len(known) == 2 else ())]
    return PageComparison(
        title=f"{name(one)} beside {name(other)}",
        rows=_sorted([_row(row.label, [row.first, row.second]) for row in rows(one, other)]),
        differences=found,
        text=text,
    )


def _row(label: str, values: list[str]) -> PageRow:
    return PageRow(name=label.strip(), values=values, different=len(set(values)) > 1)


def _sorted(found: Sequence[PageRow]) -> list[PageRow]:
    return sorted(found, key=lambda row: not row.different)


def _differences(holders: Sequence[Standing]) -> list[PageDifference]:
    """Return the allocations whose bytes differ at the peaks of a step, the largest difference first."""
    sizes = [{each.alike: each.second for each in differences(holders[0], other)} for other in holders]
    found = {one: [of_one.get(one, 0) for of_one in sizes] for one in {alike for of_one in sizes for alike in of_one}}
    apart = {one: max(values) - min(values) for one, values in found.items()}
    largest = sorted((one for one in found if apart[one]), key=lambda one: (-apart[one], one.text))[:_DIFFERENCES]
    names = {one: holder("", one.kind) + (f": {one.text}" if one.shape is not None else "") for one in largest}
    return [PageDifference(name=names[one], values=[*found[one]]) for one in largest]


_LEVEL = 9
_CODE = re.compile("`([^`]+)`")


def html(page: PageData) -> str:
    """Return *page* as one HTML file, which loads nothing from anywhere."""
    style, script = _built("page.css"), _built("page.js")
    packed = gzip.compress(msgspec.json.encode(_harmless(msgspec.to_builtins(page))), _LEVEL, mtime=0)
    title = " · ".join(f"{one.name}: {one.runs[-1].title}" if one.runs else one.name for one in page.sessions)
    policy = (
        f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{_text(title)}</title>",
            '<link rel="icon" href="data:,">',  # else a browser asks the page's server for one
            f"<style>{style}</style>",
            "</head>",
            "<body>",
            '<main id="page">',
            *(line for session in page.sessions for line in _session(session)),
            "</main>",
            f'<script type="application/octet-stream" id="data">{base64.b64encode(packed).decode()}</script>',
            f"<script>{script}</script>",
            "</body>",
            "</html>",
            "",
        ]
    )


def _harmless(value: Any) -> Any:
    """Return *value* with all texts in it made safe: no character in them deceives the reader or cannot be encoded."""
    if isinstance(value, str):
        return "\n".join(map(safe, value.split("\n")))
    if isinstance(value, dict):
        return {safe(name): _harmless(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return value if value and isinstance(value[0], int) else [_harmless(part) for part in value]
    return value


def _built(name: str) -> str:
    """Return a file that the build of ``page/`` made."""
    return (files("tfmemtop") / "page" / "built" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _text(text: str) -> str:
    """Return *text* for HTML: on one line, without characters that deceive the reader."""
    return escape(safe(text))


def _sentence(text: str) -> str:
    """Return a sentence of tfmemtop for HTML: what stands between backticks is code."""
    return _CODE.sub(r"<code>\1</code>", _text(text))


def _session(session: PageSession) -> Iterator[str]:
    """Yield what the page says of a session without scripts: the last run's verdict, what helps, a picture, facts."""
    place = f" ({_text(session.placement)})" if session.placement else ""
    yield f"<h1>{_text(session.name)}{place}</h1>"
    yield from (f"<p>{_text(note)}</p>" for note in session.notes)
    for run in session.runs[-1:]:
        yield f'<p class="verdict {run.verdict.severity}">{_sentence(run.verdict.text)}</p>'
        yield from (f"<p>{_sentence(text)}</p>" for text in (run.verdict.evidence, run.heading) if text)
        if run.verdict.remedies:
            yield "<h2>What helps</h2>"
            yield from ("<ul>", *(f"<li>{_sentence(remedy)}</li>" for remedy in run.verdict.remedies), "</ul>")
        for lines in filter(None, (run.verdict.command, run.verdict.code)):
            yield "<pre>" + "\n".join(map(_text, lines.split("\n"))) + "</pre>"
        yield '<dl class="facts">'
        yield from (f"<dt>{_text(name)}</dt><dd>{_text(value)}</dd>" for name, value in run.facts)
        yield "</dl>"
        yield from (f"<p>{_sentence(finding.text)}</p>" for finding in run.findings)
    yield f"<figure>{picture([session])}</figure>"
