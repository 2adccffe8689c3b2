"""Several sessions beside each other, as a page has them: the figures of ``tfmemtop compare``. Pure."""

from collections.abc import Sequence

from tfmemtop.findings.holders import holder
from tfmemtop.findings.ranks import differences as differences_of_ranks
from tfmemtop.findings.ranks import missing
from tfmemtop.reports.comparison_text import changed, differences, name, rows, sentences
from tfmemtop.reports.ranks import HEADINGS, cells, heading
from tfmemtop.reports.ranks import sentences as sentences_on_ranks
from tfmemtop.reports.shared.data import PageComparison, PageDifference, PageRow
from tfmemtop.state import State
from tfmemtop.state.holder_views import Listed, listed_at_peak
from tfmemtop.state.ranks import Rank, lay, of_one_job

_DIFFERENCES = 40
"""The most allocations in which sessions differ."""


def page_comparison(ranks: Sequence[Rank], states: Sequence[State]) -> PageComparison:
    """Return the comparison of the last runs of two sessions or more, with their *states*."""
    holders = [listed_at_peak(state) for state in states]
    known = [one for one in holders if one is not None]
    found = _differences(known) if len(known) == len(holders) else []
    if len(ranks) > 2 or of_one_job(*ranks):
        laid = lay(ranks)
        columns = [cells(rank) for rank in ranks]
        shown = [_row(label.lower(), values) for label, *values in [*zip(HEADINGS, *columns, strict=True)][1:]]
        text = sentences_on_ranks(laid, differences_of_ranks(laid), missing(ranks))
        return PageComparison(title=heading(laid).removesuffix(":"), rows=_sorted(shown), differences=found, text=text)
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


def _differences(holders: Sequence[Listed]) -> list[PageDifference]:
    """Return the allocations whose bytes differ at the peaks of a step, the largest difference first."""
    sizes = [{each.alike: each.second for each in differences(holders[0], other)} for other in holders]
    found = {one: [of_one.get(one, 0) for of_one in sizes] for one in {alike for of_one in sizes for alike in of_one}}
    apart = {one: max(values) - min(values) for one, values in found.items()}
    largest = sorted((one for one in found if apart[one]), key=lambda one: (-apart[one], one.text))[:_DIFFERENCES]
    names = {one: holder("", one.kind) + (f": {one.text}" if one.shape is not None else "") for one in largest}
    return [PageDifference(name=names[one], values=[*found[one]]) for one in largest]
