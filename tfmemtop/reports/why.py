"""The report that explains a recorded run: as text, with the most important first, and as JSON."""

import re
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

from tfmemtop.findings import who_holds
from tfmemtop.findings.fitting import suggested_limit
from tfmemtop.findings.holder_texts import windowless_text
from tfmemtop.findings.questions import arising
from tfmemtop.findings.remedy import SaidRemedy
from tfmemtop.findings.run_review import RunReview
from tfmemtop.findings.verdict import WIDTH, Verdict, verdict, weighed
from tfmemtop.reports import why_text as why
from tfmemtop.reports.answers import answers, in_short
from tfmemtop.reports.holders import to_json as to_json_holders
from tfmemtop.reports.holders import top_rows
from tfmemtop.reports.settings import kept_options
from tfmemtop.reports.why_text import pasted
from tfmemtop.safe import safe
from tfmemtop.state.holder_choice import Chosen, chosen, missing
from tfmemtop.state.holders import By, standing
from tfmemtop.state.model import RunState
from tfmemtop.suggested import SuggestedLimit

ROWS = 3
"""How many rows of the table of holders are shown."""

EVIDENCE_LINES, REMEDIES = 3, 2

_TITLES = 24  # columns


def page(seen: RunReview, path: str, *, whole: bool = False) -> list[str]:
    """Return the report on a run of the recording *path*, as lines of text: the verdict, its evidence, what to do.

    The five questions have a line each; with *whole* all findings follow, and whole answers. Commands and code are not
    indented, so that they can be pasted.
    """
    found = verdict(seen)
    assert found is not None
    parts: list[list[str]] = [_wrap(found.text), [*_about(seen, path)]]
    if told := _evidence(found):
        parts.append(told)
    parts += _to_do(seen, found)
    parts.append([line for title, text in in_short(seen) for line in _wrap(text, f"{title:<{_TITLES}}")])
    if whole:
        parts += _whole(seen, found)
    else:
        parts.append([f"More: tfmemtop why --long {pasted([path], WIDTH)[0]}"])
    return [line for number, part in enumerate(parts) for line in ([""] * bool(number) + part)]


def _evidence(found: Verdict) -> list[str]:
    """Return the sentences that the verdict rests on, in at most three lines."""
    text = " ".join(each for each in found.cause.evidence if each)
    return _wrap(text)[:EVIDENCE_LINES] if text else []


def _to_do(seen: RunReview, found: Verdict) -> Iterator[list[str]]:
    """Yield the part about what to do: the remedies in words, then the command or the code of the first."""
    run, suggested = seen.state.run, suggested_limit(seen.state)
    steps = why.sized(found.cause.remedies, suggested)
    if steps:
        yield [why.TO_DO, *(line for step in steps[:REMEDIES] for line in _wrap(step.elsewhere, "  * "))]
    if found.cause.code:
        yield [*found.cause.code]
        return
    step = next((step for step in steps if step.complete), None)
    if step is not None and run is not None:
        yield _command(step, run)


def _command(step: SaidRemedy, run: RunState) -> list[str]:
    name = [step.name] if step.name else []
    if run.kernel is not None:  # only Jupyter starts a kernel; a named command runs the script itself
        return pasted(["tfmemtop", "kernel", "install", *step.options], WIDTH) if not step.name else []
    named = [f"{name}={value}" for name, value in run.variables.items()]
    replaced = ("--memory-limit", "--cpu-pool") if step.name else step.options  # fit finds the limit itself
    options = [*kept_options(run.settings, replaced), *step.options]
    return pasted([*(["env", *named] if named else []), "tfmemtop", *name, *options, "--", *run.argv], WIDTH)


def _whole(seen: RunReview, found: Verdict) -> Iterator[list[str]]:
    """Yield all findings, the holders, and the answers to the questions that the run raises."""
    if found.cause.explanation:
        yield [why.WHY, *_paragraphs([found.cause.explanation])]
    if told := why.told(seen):
        yield [why.FOUND, *(line for one in told for line in _wrap(one.text, "  * "))]
    if holders := chosen(seen.state):
        yield _who_holds(holders[0])
    elif told and told[0].group.first.fatal:
        yield [who_holds.WHO_HOLDS, *_paragraphs([who_holds.not_recorded(windowless_text(missing(seen.state)))])]
    asked = arising(seen)
    for answer in answers(seen):
        if answer.question in asked:
            yield [*_wrap(answer.title), *_paragraphs(answer.paragraphs)]
            if answer.command:
                yield pasted(answer.command, WIDTH)
            if answer.code:
                yield [*answer.code]


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
    found, suggested = verdict(seen), suggested_limit(seen.state)
    assert found is not None
    return {
        "run": found.run,
        "placement": seen.state.session.placement if seen.state.session else None,
        "verdict": {
            "cause": found.cause.key.value,
            "holder": found.cause.holder or None,
            "bytes": found.cause.bytes,
            "count": found.cause.count,
            "remedy": "; ".join(step.elsewhere for step in why.sized(found.cause.remedies, suggested)) or None,
            "text": found.text,
        },
        "findings": [
            {
                "key": key(type(held.finding).__name__),
                "severity": held.finding.severity.name.lower(),
                "text": held.finding.said.text,
            }
            for held in weighed(seen)
        ],
        "limit": _limit(suggested),
        "holders": to_json_holders(holders[0], By.LAYER) if (holders := chosen(seen.state)) else None,
    }


def _limit(suggested: SuggestedLimit | None) -> dict[str, Any] | None:
    if suggested is None:
        return None
    return {"bytes": suggested.size, "growth": suggested.growth, "basis": suggested.basis.value}


def key(name: str) -> str:
    """Return a class's name with underscores: ``whole_card`` for ``WholeCard``."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
