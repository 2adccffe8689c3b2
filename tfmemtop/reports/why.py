"""The report that explains a recorded run: as text, with the most important first, and as JSON."""

import re
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

from tfmemtop.findings import who_holds
from tfmemtop.findings.fitting import suggested_limit
from tfmemtop.findings.grouping import say_group
from tfmemtop.findings.holder_texts import windowless_text
from tfmemtop.findings.questions import arising
from tfmemtop.findings.run_review import RunReview
from tfmemtop.findings.verdict import WIDTH, say_verdict, verdict, weighed
from tfmemtop.reports import why_text as why
from tfmemtop.reports.answers import answers
from tfmemtop.reports.holders import to_json as to_json_holders
from tfmemtop.reports.holders import top_rows
from tfmemtop.reports.why_text import pasted
from tfmemtop.safe import safe
from tfmemtop.state.holder_choice import Chosen, chosen, missing
from tfmemtop.state.holders import By, standing

ROWS = 3
"""How many rows of the table of holders are shown."""


def page(seen: RunReview, path: str) -> list[str]:
    """Return the report on a run of the recording *path*, as lines of text.

    Commands and code are not indented, so that they can be pasted.
    """
    found = verdict(seen)
    assert found is not None
    parts: list[list[str]] = [_wrap(say_verdict(found)), [*_about(seen, path)]]
    told = why.told(seen)
    if told:
        parts += _first(seen, told[0])
    if others := told[1:]:
        parts.append([why.ALSO_FOUND, *(line for one in others for line in _wrap(one.text, "  * "))])
    if holders := chosen(seen.state):
        parts.append(_who_holds(holders[0]))
    elif told and told[0].group.first.fatal:
        parts.append(
            [who_holds.WHO_HOLDS, *_paragraphs([who_holds.not_recorded(windowless_text(missing(seen.state)))])]
        )
    asked = arising(seen)
    for answer in answers(seen):
        if answer.question not in asked:
            continue
        parts.append([*_wrap(answer.title), *_paragraphs(answer.paragraphs)])
        if answer.command:
            parts.append(pasted(answer.command, WIDTH))
        if answer.code:
            parts.append([*answer.code])
    return [line for number, part in enumerate(parts) for line in ([""] * bool(number) + part)]


def _about(seen: RunReview, path: str) -> Iterator[str]:
    yield from _wrap(why.heading(seen))
    session, run = seen.state.session, seen.state.run
    if session and session.placement and session.placement.among_others:
        yield from _wrap(safe(why.of_a_rank(session.placement)))
    if run is None:
        return
    others = why.earlier(run.run, path) if run.kernel is None else why.restarted(run.run, run.earlier)
    if others:
        yield others


def _who_holds(one: Chosen) -> list[str]:
    """Return what holds most at the peak of a step: a paragraph, and the largest rows."""
    found = standing(one.window, one.hooked, By.LAYER)
    return [who_holds.WHO_HOLDS, *_paragraphs([who_holds.in_short(one, found)]), *top_rows(one, ROWS, "  ")]


def _first(seen: RunReview, told: why.Told) -> Iterator[list[str]]:
    """Yield the parts about the most serious finding: why it is so, and what to do."""
    if reasons := list(why.reasons(told)):
        yield [why.WHY, *_paragraphs(reasons)]
    steps, code = why.steps(told.group, suggested_limit(seen.state)), say_group(told.group).code
    run = seen.state.run
    if steps or code:
        yield [why.TO_DO, *(line for step in steps for line in _wrap(step.elsewhere, "  * "))]
    for step in steps:
        if step.complete and run is not None and run.kernel is not None:
            if not step.name:  # a named command runs the script itself, but only Jupyter starts a kernel
                yield pasted(["tfmemtop", "kernel", "install", *step.options], WIDTH)
        elif step.complete and run is not None:
            name = [step.name] if step.name else []
            yield pasted(["tfmemtop", *name, *step.options, "--", *run.argv], WIDTH)
    if code:
        yield [*code]


def _paragraphs(texts: Iterable[str]) -> list[str]:
    return [line for text in texts for line in _wrap(text, "  ")]


def _wrap(text: str, first: str = "") -> list[str]:
    plain = safe(" ".join(text.split()))  # before the text's width is measured
    rest = " " * len(first)
    return textwrap.wrap(
        plain, WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )


def to_json(seen: RunReview) -> dict[str, Any]:
    """Return the report as keys and values: run, verdict, every finding, the suggested limit, the holders."""
    found = verdict(seen)
    assert found is not None
    return {
        "run": found.run,
        "placement": seen.state.session.placement if seen.state.session else None,
        "verdict": say_verdict(found),
        "findings": [
            {
                "key": key(type(held.finding).__name__),
                "severity": held.finding.severity.name.lower(),
                "text": held.finding.said.text,
            }
            for held in weighed(seen)
        ],
        "limit": _limit(seen),
        "holders": to_json_holders(holders[0], By.LAYER) if (holders := chosen(seen.state)) else None,
    }


def _limit(seen: RunReview) -> dict[str, Any] | None:
    suggested = suggested_limit(seen.state)
    if suggested is None:
        return None
    return {"bytes": suggested.size, "growth": suggested.growth, "basis": suggested.basis.value}


def key(name: str) -> str:
    """Return a class's name with underscores: ``whole_card`` for ``WholeCard``."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
