"""Runs a case and compares what ``tfmemtop why`` says about its recording with what is true."""

import contextlib
import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.field.cases import NUMPY, Case
from tests.field.running import run
from tfmemtop.cli.main import main
from tfmemtop.events import Functions, OutOfMemory
from tfmemtop.events.recording import read
from tfmemtop.tensorflow_text import XLA_RAN_OUT

_SIZE = r"(\d[\d.,]*) ?([KMGT])i?B?\b"
_PART_OF = re.compile(rf"{_SIZE} (?:are |is )?of (?:(?:the|its|a|an) )?(?:[a-z]+ )?(?:of )?{_SIZE}")
_CHUNK = re.compile(rf"cached {_SIZE}, largest free chunk {_SIZE}")
_XLA = re.compile(r"[^.:;]*\bXLA\b[^.:;]*")
_DENIED = re.compile(r"\b(no|not|nothing|never|without)\b", re.IGNORECASE)
_PROPOSED = re.compile(rf"--(?:memory-limit|cpu-pool) {_SIZE}(?! --allocator)")  # another allocator may do with as much

_WELL = frozenset({"none", "not_memory", "setting_without_effect"})
_RAN_OUT = r"Out of memory( at|:)|pool ran out|(?<!no)(?<!not a) leak\b"
_FRAGMENTED = r"(is|was|were) fragmented"
_TO_NUMPY = frozenset({"tensors_kept", "notebook_history", "grown_by_copying"})
"""Causes that an array in place of a tensor removes."""

KEEPING = (
    *("tensors_kept", "variables_kept", "notebook_history", "runtime_keeps"),
    *("tape_open", "constants_captured", "dataset_buffer"),
)
"""Causes of which the bytes are a part of the pool."""


@dataclass(frozen=True, slots=True)
class Score:
    """What is wrong in the report on the case called ``name``, and the first sentence of the report."""

    name: str
    misses: tuple[str, ...]
    text: str


def tried(case: Case, folder: Path, *, again: bool = False, mended: bool = True) -> Score:
    """Run *case*, or with *again* take its recording from *folder*, and return its score.

    With *mended*, run also what mends it. A run that does not end as the table says is a miss.
    """
    recording = folder / f"{case.name}.jsonl"
    untrue = []
    if not again:
        recording.unlink(missing_ok=True)
        if run(case, recording) == case.fails:
            untrue.append(f"no case: the script {'passed' if case.fails else 'failed'}")
        if case.mended and mended and not run(case, folder / f"{case.name}.mended.jsonl", mended=True):
            untrue.append("no case: what mends it failed")
    if not recording.exists():
        return Score(case.name, ("no case: no recording",), "")
    score = judge(case, recording)
    return Score(score.name, (*untrue, *score.misses), score.text)


def judge(case: Case, recording: Path) -> Score:
    """Return the score of *case*, whose run is in *recording*."""
    page = _why(str(recording))
    report = json.loads(_why(str(recording), "--json"))
    found = report["verdict"]
    false = list(_false(case, page, report, compiled=_compiled(recording)))
    if not isinstance(found, dict):
        return Score(case.name, ("verdict: of the old form", *false), found)
    return Score(case.name, (*_wrong(case, found, page), *false), str(found["text"]))


def _why(*words: str) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        main(["why", *words])
    return " ".join(printed.getvalue().split())


def _wrong(case: Case, found: dict[str, Any], page: str) -> Iterator[str]:
    """Yield what is wrong in the verdict *found*."""
    text = " ".join(found["text"].split())
    if found["cause"] not in case.causes:
        yield f"cause: {found['cause']}, not {case.cause}"
    for name, wanted in (("holder", case.holder), ("remedy", case.remedy)):
        if wanted is not None and not re.search(wanted, found[name] or "", re.IGNORECASE):
            yield f"{name}: {found[name]!r}, without {wanted}"
    if case.holder is not None and not re.search(case.holder, text, re.IGNORECASE):
        yield f"text: without {case.holder}"
    if len(text) > 160 or text not in page:
        yield f"text: {len(text)} characters, {'in' if text in page else 'not in'} the report"
    limit = _limit(case)
    if limit and found["cause"] in KEEPING and (found["bytes"] or 0) > limit:
        yield f"false: {found['bytes'] >> 20} MiB are kept in a pool of {limit >> 20} MiB"


def _compiled(recording: Path) -> bool:
    """Return whether XLA compiled a function, which Keras has it do on a GPU, without a word of the script's."""
    return any(
        any(one.compiled for one in event.functions)
        if isinstance(event, Functions)
        else isinstance(event, OutOfMemory) and XLA_RAN_OUT in event.message
        for event in read(recording).events()
    )


def _false(case: Case, page: str, report: dict[str, Any], *, compiled: bool) -> Iterator[str]:
    """Yield the false sentences: those of the case, and those that are false anywhere."""
    for never in (
        case.never,
        _RAN_OUT if case.causes <= _WELL else None,
        None if "fragmentation" in case.causes else _FRAGMENTED,
        None if case.causes & _TO_NUMPY else NUMPY,
    ):
        if never and (said := re.search(never, page)):
            yield f"false: {_around(page, said)}"
    yield from (f"false: {said}, more than the whole" for said in above_whole(page))
    for said in () if compiled else _XLA.finditer(page):
        if not _DENIED.search(said[0]):
            yield f"false: {said[0]}, and nothing was compiled"
    limit = _limit(case)
    if not limit or not case.fails or case.cause == "not_memory":
        return
    for said in _PROPOSED.finditer(page):
        if _bytes(*said.groups()) <= limit:
            yield f"false: {_around(page, said)}, which has just failed"
    if report["limit"] and report["limit"]["bytes"] <= limit:
        yield f"false: a limit of {report['limit']['bytes'] >> 20}M, though {limit >> 20}M has just failed"


def above_whole(page: str) -> Iterator[str]:
    """Yield where *page*, on one line, says that a part is larger than its whole, or a free chunk than all that is."""
    for pattern, part in ((_PART_OF, 0), (_CHUNK, 2)):
        for said in pattern.finditer(page):
            sizes = [_bytes(*said.groups()[at : at + 2]) for at in (part, 2 - part)]
            if sizes[0] > 1.01 * sizes[1]:
                yield _around(page, said)


def _limit(case: Case) -> int | None:
    found = re.search(rf"(?:pool|limit) {_SIZE}", case.options)
    return _bytes(*found.groups()) if found else None


def _around(page: str, said: re.Match[str]) -> str:
    return "…" + page[max(0, said.start() - 40) : said.end() + 40] + "…"


def _bytes(number: str, unit: str) -> int:
    return int(float(number.replace(",", "")) * 2.0 ** (10 * "KMGT".index(unit) + 10))
