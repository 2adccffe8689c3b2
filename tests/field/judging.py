"""Compares what ``tfmemtop why`` says about a recording with what is true of its case."""

import contextlib
import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.field.cases import Case
from tfmemtop.cli.main import main

_SIZE = r"(\d[\d.,]*) ?([KMGT])i?B?\b"
_PART_OF = re.compile(rf"{_SIZE} (?:are |is )?of (?:(?:the|its|a|an) )?(?:[a-z]+ )?(?:of )?{_SIZE}")
_PROPOSED = re.compile(rf"--(?:memory-limit|cpu-pool) {_SIZE}")


@dataclass(frozen=True, slots=True)
class Score:
    """What is wrong in the report on the case called ``name``, and the first sentence of the report."""

    name: str
    misses: tuple[str, ...]
    text: str


def judge(case: Case, recording: Path) -> Score:
    """Return the score of *case*, whose run is in *recording*."""
    page = " ".join(_why(str(recording)).split())
    report = json.loads(_why(str(recording), "--json"))
    found = report["verdict"]
    if not isinstance(found, dict):
        return Score(case.name, ("verdict: of the old form", *_false(case, page, report)), found)
    return Score(case.name, (*_wrong(case, found), *_false(case, page, report)), str(found["text"]))


def _why(*words: str) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        main(["why", *words])
    return printed.getvalue()


def _wrong(case: Case, found: dict[str, Any]) -> Iterator[str]:
    if found["cause"] not in case.cause.split("|"):
        yield f"cause: {found['cause']}, not {case.cause}"
    for name, wanted in (("holder", case.holder), ("remedy", case.remedy)):
        if wanted is not None and not re.search(wanted, found[name] or "", re.IGNORECASE):
            yield f"{name}: {found[name]!r}, without {wanted}"
    if len(found["text"]) > 160:
        yield f"text: {len(found['text'])} characters"


def _false(case: Case, page: str, report: dict[str, Any]) -> Iterator[str]:
    """Yield the false sentences: those of the case, and those that are false anywhere."""
    for never in case.never:
        if said := re.search(never, page):
            yield f"false: {_around(page, said)}"
    for said in _PART_OF.finditer(page):
        if _bytes(*said.groups()[:2]) > 1.01 * _bytes(*said.groups()[2:]):
            yield f"false: {_around(page, said)}, more than the whole"
    if not case.compiled and (said := re.search(r"XLA", page)):
        yield f"false: {_around(page, said)}, and nothing was compiled"
    if case.fails and case.cause != "not_memory" and (tried := re.search(rf"(?:pool|limit) {_SIZE}", case.options)):
        limit = _bytes(*tried.groups())
        for said in _PROPOSED.finditer(page):
            if _bytes(*said.groups()) <= limit:
                yield f"false: {_around(page, said)}, which has just failed"
        if report["limit"] and report["limit"]["bytes"] <= limit:
            yield f"false: a limit of {report['limit']['bytes'] >> 20}M, though {limit >> 20}M has just failed"


def _around(page: str, said: re.Match[str]) -> str:
    return "…" + page[max(0, said.start() - 40) : said.end() + 40] + "…"


def _bytes(number: str, unit: str) -> int:
    return int(float(number.replace(",", "")) * 2.0 ** (10 * "KMGT".index(unit) + 10))
