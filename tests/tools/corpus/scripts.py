"""The odd scripts: ``python -m tests.tools.corpus.scripts [--seed N] [--live] [--quick] [NAME…]``.

Each is run bare and under ``tfmemtop record``. With ``--live`` those marked as live also run under the live screen,
against a bare terminal of the same size. Compared are: the bytes of stdout and stderr, the exit code, and the processes
and files left behind. The seed decides the order. The rows are in ``tests/tools/corpus/tables``.
"""

import argparse
import collections
import difflib
import json
import random
import re
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from tests.building import start
from tests.tools.corpus import running, terminals
from tests.tools.corpus.box import TFMEMTOP, Box
from tests.tools.corpus.running import HUNG, RunOutcome
from tests.tools.corpus.script import FILTERS, Script, py, sh
from tests.tools.corpus.tables import SCRIPTS


def together(scripts: Sequence[Script]) -> list[Script]:
    """Return *scripts* with those joined that can be: with TensorFlow in one process, the others in one shell."""
    joined = [script for script in scripts if _joins(script)]
    trained = [script for script in scripts if _trains(script)]
    rest = [script for script in scripts if script not in joined and script not in trained]
    return [
        *rest,
        *([_in_one_shell(joined)] if len(joined) > 1 else joined),
        *([_in_one_process(trained)] if len(trained) > 1 else trained),
    ]


def _joins(script: Script) -> bool:
    """Return whether *script* can be joined: it starts in the usual way, and leaves nothing that affects others."""
    own = (script.prepare, script.environment, script.filters, script.differs, script.needs, script.tensorflow)
    streams = (script.stdin, script.stdout, script.stderr)
    of_its_start = script.name.startswith(
        ("signals-as", "signals-killed", "signals-whole", "process-daemon", "process-prints-later")
    )
    return not any(own) and streams == ("null", "pipe", "pipe") and script.cwd == "cwd" and not of_its_start


def _trains(script: Script) -> bool:
    plain = script.tensorflow and script.source and not (script.files or script.environment or script.differs)
    return bool(plain and (script.stdin, script.stdout, script.stderr) == ("null", "pipe", "pipe"))


def _in_one_shell(scripts: Sequence[Script]) -> Script:
    lines = ["start=$PWD"]
    files: dict[str, str | bytes] = {}
    for script in scripts:
        told = f"echo '== {script.name}'"
        lines.append(f'cd "$start/{script.name}"; {told}; {told} >&2; {shlex.join(script.command)}; echo "= $?"')
        own = {**script.files, **({"script.py": script.source} if script.source else {})}
        files |= {f"{script.name}/{name}": text for name, text in (own or {"empty": ""}).items()}
    return sh("together", f"{len(scripts)} scripts, one after the other", "\n".join(lines), files=files)


def _in_one_process(scripts: Sequence[Script]) -> Script:
    parts = [f"print('== {script.name}', flush=True)\n{script.source}" for script in scripts]
    filters = tuple(dict.fromkeys(name for script in scripts for name in script.filters))
    return py("together-tf", f"{len(scripts)} in one process", "\n".join(parts), tensorflow=True, filters=filters)


_PLAIN = py("plain", "a script with TensorFlow and nothing odd", "", tensorflow=True)
_LIMIT_S = 120.0
_SUMMARY = re.compile(
    rb"(?:tfmemtop: (?!recorded in|the recording is)[^\n]*\n)*tfmemtop: (?:recorded in|the recording is)[^\n]*\n\Z"
)
_LINES_SHOWN = 12


@dataclass
class Trial:
    """What differs between the ways to run a script. Its keys are way and aspect, such as ``record stdout``."""

    differing: dict[str, str] = field(default_factory=dict)
    by_design: dict[str, str] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        return "DIFFERS" if self.differing else "by design" if self.by_design else "equal"

    def compare(self, script: Script, way: str, bare: RunOutcome, ours: RunOutcome) -> None:
        for aspect in RunOutcome._fields:
            expected, found = getattr(bare, aspect), getattr(ours, aspect)
            if isinstance(expected, bytes):
                for name in script.filters:
                    expected, found = FILTERS[name](expected), FILTERS[name](found)
            if expected == found:
                continue
            reason = script.differs.get("live") if way == "live" else None
            reason = reason or script.differs.get(aspect)  # type: ignore[call-overload]
            told = self.by_design if reason else self.differing
            told[f"{way} {aspect}"] = reason or _difference(expected, found)


def lacks(script: Script) -> str:
    """Return the name of something that the script needs and this machine does not have, or ""."""
    for need in script.needs:
        kind, _, module = need.partition(":")
        if not (find_spec(module) if kind == "module" else shutil.which(need)):
            return module or need
    return ""


def attempt(script: Script, box: Box, *, with_live: bool) -> Trial:
    """Run *script* bare and recorded. Run it on terminals too, if it is marked as live and *with_live* is set."""
    trial = Trial()
    bare = _run(script, box, (), None)
    if bare.code == HUNG:
        trial.differing["bare"] = f"does not end within {_LIMIT_S:.0f} s without us"
        return trial
    recorded = _run(script, box, (*TFMEMTOP, "record", "-o", str(box.recording), "--"), bare)
    recorded = recorded._replace(stderr=_SUMMARY.sub(b"", recorded.stderr))
    if script.stderr == "same":
        recorded = recorded._replace(stdout=_SUMMARY.sub(b"", recorded.stdout))
    trial.compare(script, "record", bare, recorded)
    if script.live and with_live:
        box.prepare(script)
        command, environment, cwd = box.command(script), box.environment(script), box.path / script.cwd
        folders = (cwd, box.path / "run", box.path / "state")
        shown, size = terminals.live(TFMEMTOP, command, environment, folders, _LIMIT_S)
        shown = shown._replace(files=tuple(box.left()))
        box.prepare(script)
        alone = terminals.bare(command, environment, cwd, size, _LIMIT_S)
        trial.compare(script, "live", alone._replace(files=tuple(box.left())), shown)
    return trial


def _run(script: Script, box: Box, ours: tuple[str, ...], like: RunOutcome | None) -> RunOutcome:
    box.prepare(script)
    box.recording.unlink(missing_ok=True)
    command = [*ours, *box.command(script)]
    outcome = running.run(script, command, box.environment(script), box.path / script.cwd, _LIMIT_S, like)
    return outcome._replace(files=tuple(box.left()))


def _difference(expected: object, found: object) -> str:
    before, after = _lines(expected), _lines(found)
    lines = list(difflib.unified_diff(before, after, "bare", "ours", lineterm="", n=0))[2:]
    shown = [line[:300] for line in lines[:_LINES_SHOWN]]
    return "\n".join([*shown, f"… {len(lines) - _LINES_SHOWN} lines more"] if len(lines) > _LINES_SHOWN else shown)


def _lines(value: object) -> list[str]:
    if isinstance(value, bytes):
        return [repr(line)[2:-1] for line in value.splitlines(keepends=True)]
    return [str(each) for each in value] if isinstance(value, tuple) else [str(value)]


def chosen(names: list[str], quick: bool) -> list[Script]:
    """Return the scripts named, by whole name or beginning; all of them if *names* is empty.

    Raises:
        SystemExit: one of *names* is the name or the beginning of no script.
    """
    known = [each.name for each in SCRIPTS]
    wanted: set[str] = set()
    for name in names:
        found = [name] if name in known else [each for each in known if each.startswith(name)]
        if not found:
            raise SystemExit(f"there is no script {name}")
        wanted.update(found)
    return [each for each in SCRIPTS if (not names or each.name in wanted) and (not quick or each.quick)]


def play(scripts: list[Script], *, with_live: bool, cache: Path | None = None) -> dict[str, Trial | str]:
    """Run the scripts one after the other, and print the result of each. *cache* may already hold the library.

    Return the results by the names of the scripts; for those that were left out the reason.
    """
    running.become_init()
    root = Path(tempfile.mkdtemp(prefix="tfc-", dir="/tmp"))  # a short path, because sockets are in it
    if cache is None:
        cache = root / "cache"
        cache.mkdir(mode=0o700)
    box = Box(root, cache)
    results: dict[str, Trial | str] = {}
    try:
        if any(script.tensorflow for script in scripts):
            # Built here: a builder that an engine started could run longer than a script.
            start(cache, "probe", "addresses", environment=box.environment(_PLAIN)).wait()
        for script in scripts:
            began = time.monotonic()
            missing = lacks(script)
            result = f"left out: no {missing}" if missing else attempt(script, box, with_live=with_live)
            results[script.name] = result
            verdict = result if isinstance(result, str) else result.verdict
            print(f"{script.name:36} {time.monotonic() - began:6.1f} s  {verdict}", flush=True)
            for where, text in {} if isinstance(result, str) else {**result.differing, **result.by_design}.items():
                print("    " + f"{where}: {text}".replace("\n", "\n      "), flush=True)
    finally:
        running.end_all()
        box.clear()
        shutil.rmtree(root, ignore_errors=True)
    return results


def main() -> int:
    """Run the scripts named on the command line, or all. Return 1 if one differs and this is not by design."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.corpus.scripts", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="of the order; 0 is the tables' own")
    parser.add_argument("--live", action="store_true", help="under the live screen too")
    parser.add_argument("--quick", action="store_true", help="the short form; several are run together")
    parser.add_argument("--json", type=Path, help="write the differing ones to this file")
    parser.add_argument("--cache", type=Path, help="a folder for the library, kept from one call to the next")
    parser.add_argument("--list", action="store_true", help="only name them")
    parser.add_argument("names", nargs="*", metavar="NAME", help="whole or as it begins; all if none")
    arguments = parser.parse_args()
    scripts = chosen(arguments.names, arguments.quick)
    if arguments.list:
        print("\n".join(f"{script.name:36} {script.exercises}" for script in scripts))
        return 0
    if arguments.seed:
        random.Random(arguments.seed).shuffle(scripts)
    if arguments.quick:
        scripts = together(scripts)
    began = time.monotonic()
    results = play(scripts, with_live=arguments.live, cache=arguments.cache)
    trials = {name: result for name, result in results.items() if isinstance(result, Trial)}
    counts = collections.Counter(trial.verdict for trial in trials.values())
    counts["tried"], counts["left out"] = len(trials), len(results) - len(trials)
    told = ", ".join(f"{count} {what}" for what, count in counts.items())
    print(f"seed {arguments.seed}, {time.monotonic() - began:.0f} s: {told}")
    if arguments.json:
        arguments.json.write_text(
            json.dumps({name: trial.differing for name, trial in trials.items() if trial.differing})
        )
    return int(counts["DIFFERS"] > 0)


if __name__ == "__main__":
    sys.exit(main())
