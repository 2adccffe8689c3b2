"""Test on a GPU what the replay predicts: ``python -m tests.gpu.whatif_table [--narrow] [--at-once 6] [NAME…]``.

Each script is recorded once with growth on, ``--trace`` and no limit. The table that ``tfmemtop whatif`` makes of the
recording contains the smallest limits, for growth on and off. Then the script runs under five limits around these, and
these runs are recorded as well. At and above *surely* no run may fail, below *at least* no run may pass, and where one
passes its pool must be within 2 % of the prediction. With ``--narrow`` more runs find the smallest limit that really
passes. For a script that needs more than what was recorded, only two predictions are made and tried: it passes with
the pool that it reached, which is *surely* here, and it fails below *at least*.

The recordings stay in the folder that ``TFMEMTOP_KEEP_RECORDINGS`` names.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.gpu.predicted import SCRIPTS
from tests.tools.corpus.whatif import Proof, Tried, around, lines
from tfmemtop.events import Trace, recording
from tfmemtop.events.device_names import is_gpu, is_pinned
from tfmemtop.experiments.whatif.course import Course, course_of
from tfmemtop.experiments.whatif.waiting import runs_of
from tfmemtop.probe.build import REPLAY, build
from tfmemtop.probe.replaying import Question, ReplayAnswer, Replayer
from tfmemtop.units import MIB

_PROGRAM = [sys.executable, "-m", "tfmemtop"]
_AT_ONCE = 5  # limits tried at a time
_ON_OFF = {True: "on", False: "off"}


def recorded(name: str, path: Path, *options: str) -> bool:
    """Run the script called *name* with *options*, and record it to *path*. Return whether its exit code is 0."""
    command = [*_PROGRAM, "record", "-o", str(path), "--gpus", "0", *options, "--", sys.executable, *SCRIPTS[name]]
    return subprocess.run(command, capture_output=True, check=False, timeout=400).returncode == 0


def peak_pool(path: Path) -> int:
    """Return the largest pool of the run recorded at *path*, in bytes: of all logical devices of the GPU together."""
    return int(_asked("compare", "--json", f"{path}:1", f"{path}:1")["runs"][0]["peak_pool"])


def courses(path: Path) -> dict[str, Course]:
    """Return the trace of each logical GPU's pool in the recording at *path*."""
    parts: dict[str, list[Trace]] = defaultdict(list)
    for event in recording.read(path).events():
        if isinstance(event, Trace) and is_gpu(event.device) and not is_pinned(event.device):
            parts[event.device].append(event)
    return {device: course_of(found) for device, found in parts.items()}


def prove(name: str, program: Path, folder: Path, *, narrows: bool) -> list[Proof]:
    """Return the predictions for the script called *name* and the results of its runs, for growth on and off."""
    first = folder / f"whatif-{name}.jsonl"
    if not recorded(name, first, "--growth", "on", "--trace"):
        raise RuntimeError(f"{name} fails without a limit")
    traced = courses(first)
    # The logical devices share the limit of their GPU in equal parts. So the device that needs most decides.
    said = [_asked("whatif", str(first), "--json", "--device", device) for device in traced]
    outgrown = any(one["seen"]["outgrown"] for one in said)
    exact = None if outgrown else sum(one["rows"][0]["pool"] for one in said) == peak_pool(first)

    def of(growth: bool) -> Proof:
        ends = [one["smallest"]["growth_on" if growth else "growth_off"] for one in said]
        at_least = len(ends) * max(end["at_least"] for end in ends) // MIB
        uppers = [end["worked" if outgrown else "surely"] for end in ends]
        surely = None if None in uppers else len(ends) * max(uppers) // MIB
        found: dict[int, Path | None] = {}

        def passes(limit: int) -> bool:
            path = folder / f"whatif-{name}-{_ON_OFF[growth]}-{limit}.jsonl"
            passed = recorded(name, path, "--growth", _ON_OFF[growth], "--memory-limit", f"{limit}M")
            found[limit] = path if passed else None
            return passed

        smallest = _smallest(around(at_least, surely), passes, narrows=narrows)
        tried = _tried(program, [*traced.values()], growth, found)
        if outgrown:  # the replay of a part shows what fails, and the run shows what passes
            reached = peak_pool(first)
            enough = (True if surely is not None and one.limit >= surely else one.said_fits and None for one in tried)
            tried = tuple(
                replace(one, said_fits=fits, said_pool=reached) for one, fits in zip(tried, enough, strict=True)
            )
        title = f"{name}, growth {_ON_OFF[growth]}"
        events = sum(len(one.events) for one in traced.values())
        return Proof(title, events, 0.0, exact, at_least, surely, tried, smallest)

    with ThreadPoolExecutor(2) as at_once:
        return list(at_once.map(of, (True, False)))


def _smallest(limits: list[int], passes: Callable[[int], bool], *, narrows: bool) -> int | None:
    """Try all *limits*, then others between them, until the smallest one that passes is known to 1 %, and return it.

    Several limits are tried at once. If *narrows* is false, only *limits* are tried, and ``None`` is returned.
    """
    tried: dict[int, bool] = {}
    while limits:
        with ThreadPoolExecutor(len(limits)) as at_once:
            tried |= zip(limits, at_once.map(passes, limits), strict=True)
        good = min((limit for limit, passed in tried.items() if passed), default=None)
        if not narrows or good is None:
            return None
        bad = max((limit for limit, passed in tried.items() if not passed and limit < good), default=good // 2)
        parts = _AT_ONCE if good - bad > max(1, good // 100) else 0
        limits = sorted({bad + (good - bad) * part // (parts + 1) for part in range(1, parts + 1)} - {bad, good})
    return good


def _tried(program: Path, traced: Sequence[Course], growth: bool, found: dict[int, Path | None]) -> tuple[Tried, ...]:
    """Return the prediction for each limit in *found*, by the traces of all devices, and the result of its run."""
    limits = sorted(found)
    shares = [limit * MIB // len(traced) // MIB for limit in limits]
    answers = [_answers(program, one, growth, shares) for one in traced]
    tried = []
    for limit, *of_limit in zip(limits, *answers, strict=True):
        path = found[limit]
        fits = [True if answer.in_order.fits else None if answer.waiting.fits else False for answer in of_limit]
        pools = [(one.in_order if one.in_order.fits else one.waiting).peak_pool for one in of_limit]
        pool = None if path is None else peak_pool(path)
        tried.append(Tried(limit, path is not None, pool, False not in fits and (None not in fits or None), sum(pools)))
    return tuple(tried)


def _answers(program: Path, traced: Course, growth: bool, limits: Sequence[int]) -> list[ReplayAnswer]:
    with Replayer(program, traced.events, traced.steps, traced.scratch, runs_of(traced)) as replayer:
        answers = replayer.ask([Question(growth, True, limit * MIB) for limit in limits])
    return [answer for answer in answers if isinstance(answer, ReplayAnswer)]


def _asked(*arguments: str) -> dict[str, Any]:
    done = subprocess.run([*_PROGRAM, *arguments], capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Prove the predictions, several at once, and print each. Return 1 if one did not come true, else 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", metavar="NAME", nargs="*", help=f"of: {', '.join(SCRIPTS)}")
    parser.add_argument("--narrow", action="store_true", help="look for the smallest limit that passes, to 1 %%")
    parser.add_argument("--at-once", type=int, default=6, help="scripts proved at a time")
    asked = parser.parse_args(arguments)
    spec = find_spec("tensorflow")
    assert spec is not None and spec.origin is not None
    built = build(Path(spec.origin).parent, version("tensorflow"), REPLAY)
    if built.state != "built":
        print(built.unbuilt)
        return 1
    broken = 0
    with tempfile.TemporaryDirectory() as own, ThreadPoolExecutor(asked.at_once) as at_once:
        folder = Path(os.environ.get("TFMEMTOP_KEEP_RECORDINGS", own))

        def proved(name: str) -> list[Proof] | str:
            try:
                return prove(name, Path(built.path), folder, narrows=asked.narrow)
            except (RuntimeError, OSError, ValueError, KeyError, TypeError, subprocess.SubprocessError) as error:
                return f"{name}: {error!r}"

        for future in as_completed([at_once.submit(proved, name) for name in asked.names or SCRIPTS]):
            proofs = future.result()
            if isinstance(proofs, str):
                print(proofs, flush=True)
                broken += 1
                continue
            for proof in proofs:
                print("\n".join(lines(proof)), flush=True)
                broken += proof.is_broken
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
