"""One script run in each way, and the differences between the ways."""

import difflib
import re
import shutil
import sys
import time
from dataclasses import dataclass, field

from tests.tools.corpus import running, terminals
from tests.tools.corpus.box import Box
from tests.tools.corpus.running import HUNG, RunOutcome
from tests.tools.corpus.script import FILTERS, Script

TFMEMTOP = (sys.executable, "-I", "-m", "tfmemtop")
"""The installed command without its first Python, which heeds the user's variables as any Python does."""

_LIMIT_S = 20.0
_LIMIT_TENSORFLOW_S = 120.0
_SUMMARY = re.compile(
    rb"(?:tfmemtop: (?!recorded in|the recording is)[^\n]*\n)*tfmemtop: (?:recorded in|the recording is)[^\n]*\n\Z"
)
_LINES_SHOWN = 12


@dataclass
class Trial:
    """The result of a script. The keys of *differing* are way and aspect, such as ``record stdout``."""

    script: Script
    differing: dict[str, str] = field(default_factory=dict)
    by_design: dict[str, str] = field(default_factory=dict)
    missing: str = ""
    took_s: float = 0.0

    @property
    def verdict(self) -> str:
        """The result in one or two words."""
        if self.missing:
            return f"left out: no {self.missing}"
        return "DIFFERS" if self.differing else "by design" if self.by_design else "equal"


def lacks(script: Script) -> str:
    """Return the name of something that the script needs and this machine does not have, or ""."""
    from importlib.util import find_spec

    for need in script.needs:
        kind, _, module = need.partition(":")
        if not (find_spec(module) if kind == "module" else shutil.which(need)):
            return module or need
    return ""


def attempt(script: Script, box: Box, *, with_live: bool) -> Trial:
    """Run *script* bare and recorded. Run it on terminals too, if it is marked as live and *with_live* is set."""
    trial = Trial(script, missing=lacks(script))
    if trial.missing:
        return trial
    began = time.monotonic()
    limit_s = _LIMIT_TENSORFLOW_S if script.tensorflow else _LIMIT_S
    bare = _run(script, box, (), limit_s, None)
    if bare.code == HUNG:
        trial.differing["bare"] = f"does not end within {limit_s:.0f} s without us"
        return trial
    recorded = _run(script, box, (*TFMEMTOP, "record", "-o", str(box.recording), "--"), limit_s, bare)
    recorded = recorded._replace(stderr=_SUMMARY.sub(b"", recorded.stderr))
    if script.stderr == "same":
        recorded = recorded._replace(stdout=_SUMMARY.sub(b"", recorded.stdout))
    _compare(trial, "record", bare, recorded)
    if script.live and with_live:
        shown, size = _live(script, box, limit_s)
        box.prepare(script)
        alone = terminals.bare(box.command(script), box.environment(script), box.path / script.cwd, size, limit_s)
        alone = alone._replace(files=tuple(box.left()))
        _compare(trial, "live", alone, shown)
    trial.took_s = time.monotonic() - began
    return trial


def _run(script: Script, box: Box, ours: tuple[str, ...], limit_s: float, like: RunOutcome | None) -> RunOutcome:
    box.prepare(script)
    box.recording.unlink(missing_ok=True)
    command = [*ours, *box.command(script)]
    outcome = running.run(script, command, box.environment(script), box.path / script.cwd, limit_s, like)
    return outcome._replace(files=tuple(box.left()))


def _live(script: Script, box: Box, limit_s: float) -> tuple[RunOutcome, tuple[int, int]]:
    box.prepare(script)
    folders = (box.path / script.cwd, box.path / "run", box.path / "state")
    shown, size = terminals.live(TFMEMTOP, box.command(script), box.environment(script), folders, limit_s)
    return shown._replace(files=tuple(box.left())), size


def _compare(trial: Trial, way: str, bare: RunOutcome, ours: RunOutcome) -> None:
    script = trial.script
    for aspect in RunOutcome._fields:
        expected, found = getattr(bare, aspect), getattr(ours, aspect)
        if isinstance(expected, bytes):
            expected, found = (_filtered(script, data) for data in (expected, found))
        if expected == found:
            continue
        reason = script.differs.get("live") if way == "live" else None
        reason = reason or script.differs.get(aspect)  # type: ignore[call-overload]
        if reason:
            trial.by_design[f"{way} {aspect}"] = reason
        else:
            trial.differing[f"{way} {aspect}"] = _difference(expected, found)


def _filtered(script: Script, data: bytes) -> bytes:
    for name in script.filters:
        data = FILTERS[name](data)
    return data


def _difference(expected: object, found: object) -> str:
    before, after = _lines(expected), _lines(found)
    lines = list(difflib.unified_diff(before, after, "bare", "ours", lineterm="", n=0))[2:]
    shown = [line[:300] for line in lines[:_LINES_SHOWN]]
    return "\n".join([*shown, f"… {len(lines) - _LINES_SHOWN} lines more"] if len(lines) > _LINES_SHOWN else shown)


def _lines(value: object) -> list[str]:
    if isinstance(value, bytes):
        return [repr(line)[2:-1] for line in value.splitlines(keepends=True)]
    return [str(each) for each in value] if isinstance(value, tuple) else [str(value)]


def summary(trials: list[Trial]) -> dict[str, int]:
    """Return how many scripts had each result."""
    tried = [trial for trial in trials if not trial.missing]
    return {
        "tried": len(tried),
        "live": sum(trial.script.live for trial in tried),
        "equal": sum(trial.verdict == "equal" for trial in tried),
        "differing by design": sum(trial.verdict == "by design" for trial in tried),
        "differing": sum(trial.verdict == "DIFFERS" for trial in tried),
        "left out": len(trials) - len(tried),
    }
