"""Whether proposed limits hold: ``python -m tests.tools.limits [-j N] [--growth on|off|both] [NAME…]``.

What mends each case of ``tests.field``, or those named, is recorded, with growth on and off on a GPU. Then it runs
again under the limit that ``tfmemtop why --json`` proposes. A proposal holds if the program passes under it.
"""

import argparse
import json
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from tests.field.cases import CASES, Case
from tests.field.running import OURS, run

TRAININGS = {case.name: case for case in CASES if case.mended and not case.mended.endswith(".ipynb")}


def first(case: Case, recording: Path) -> bool:
    """Record what mends *case*, with its options and without a limit; return whether it passed."""
    return run(case, recording, mended=True)


def again(case: Case, recording: Path, limit_option: str) -> tuple[bool, str]:
    """Run under the limit that is proposed after *recording*. Return whether it held, and what was proposed."""
    why = json.loads(subprocess.run([*OURS, "why", "--json", recording], capture_output=True, check=True).stdout)
    if (limit := why["limit"]) is None:
        return False, f"no limit is proposed: {why['verdict']['text']}"
    kept = "" if limit_option in case.options else case.options
    limited = replace(case, options=f"{kept} {limit_option} {limit['bytes']}")
    held = run(limited, recording.with_suffix(".again.jsonl"), mended=True)
    return held, f"{limit['bytes'] >> 20} MiB ({limit['basis']}), peak {why['verdict']['bytes'] or 0:,} bytes"


def main() -> int:
    """Return 0 if all proposed limits hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.limits", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--growth", choices=["on", "off", "both"], help="on a GPU, not on the CPU's pool")
    parser.add_argument("-j", type=int, default=1, metavar="N", help="how many run at the same time")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the recordings in FOLDER")
    words = parser.parse_args()
    limit_option = "--memory-limit" if words.growth else "--cpu-pool"
    ways = [f"--growth {growth}" for growth in ("on", "off") if words.growth in (growth, "both")] or ["--cpu-pool 2GiB"]
    names = words.names or list(TRAININGS)
    failed = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = words.keep or Path(temporary)
        folder.mkdir(exist_ok=True)
        for way in ways:
            cases = [replace(TRAININGS[name], options=way) for name in names]
            recordings = [folder / f"{case.name}{way.replace(' ', '')}.jsonl" for case in cases]
            # With growth off, a program takes the whole card: one after the other.
            with ThreadPoolExecutor(1 if "off" in way else words.j) as pool:
                passed = list(pool.map(first, cases, recordings))
            with ThreadPoolExecutor(words.j) as pool:
                tried = pool.map(again, cases, recordings, [limit_option] * len(cases))
                for case, ran, (held, text) in zip(cases, passed, tried, strict=True):
                    failed += not (ran and held)
                    print(f"{case.name:24} {way:14} {'holds' if ran and held else 'FAILS'}  {text}", flush=True)
    print(f"{len(ways) * len(names) - failed} of {len(ways) * len(names)} proposed limits hold")
    return int(failed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
