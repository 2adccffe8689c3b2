"""The odd scripts: ``python -m tests.tools.corpus.scripts [--seed N] [--live] [--quick] [NAME…]``.

Each is run bare and under ``tfmemtop record``. With ``--live`` those marked as live also run under the live screen,
against a bare terminal of the same size. Compared are: the bytes of stdout and stderr, the exit code, and the processes
and files left behind. The seed decides the order. The rows are in ``tests/tools/corpus/tables``.
"""

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.building import start
from tests.tools.corpus import running
from tests.tools.corpus.box import Box
from tests.tools.corpus.script import Script, py
from tests.tools.corpus.tables import SCRIPTS
from tests.tools.corpus.together import together
from tests.tools.corpus.trial import Trial, attempt, summary

_PLAIN = py("plain", "a script with TensorFlow and nothing odd", "", tensorflow=True)


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


def play(scripts: list[Script], *, with_live: bool, cache: Path | None = None) -> list[Trial]:
    """Run the scripts one after the other, and print the result of each. *cache* may already hold the library."""
    running.become_init()
    root = Path(tempfile.mkdtemp(prefix="tfc-", dir="/tmp"))  # a short path, because sockets are in it
    if cache is None:
        cache = root / "cache"
        cache.mkdir(mode=0o700)
    box = Box(root, cache)
    trials = []
    try:
        if any(script.tensorflow for script in scripts):
            # Built here: a builder that an engine started could run longer than a script.
            start(cache, "probe", "addresses", environment=box.environment(_PLAIN)).wait()
        for script in scripts:
            trial = attempt(script, box, with_live=with_live)
            trials.append(trial)
            print(f"{script.name:36} {trial.took_s:6.1f} s  {trial.verdict}", flush=True)
            for told in (trial.differing, trial.by_design):
                for where, text in told.items():
                    print("    " + f"{where}: {text}".replace("\n", "\n      "), flush=True)
    finally:
        running.end_all()
        box.clear()
        shutil.rmtree(root, ignore_errors=True)
    return trials


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
    trials = play(scripts, with_live=arguments.live, cache=arguments.cache)
    found = summary(trials)
    print(
        f"seed {arguments.seed}, {time.monotonic() - began:.0f} s: " + ", ".join(f"{n} {k}" for k, n in found.items())
    )
    if arguments.json:
        arguments.json.write_text(json.dumps({each.script.name: each.differing for each in trials if each.differing}))
    return int(found["differing"] > 0)


if __name__ == "__main__":
    sys.exit(main())
