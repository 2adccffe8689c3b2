"""The kill matrix: ``python -m tests.tools.corpus.kills [--seed N] [--count 400] [--jobs N]``.

Each of our processes gets each signal at random moments. A training counts into a file and prints. It must go on to
its end, its later output must be in the kept file, and nothing may be left over. The cases in which the design gives
this up are in ``kill_table.py``.
"""

import argparse
import collections
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.tools.corpus.kill_table import plans
from tests.tools.corpus.striking import Struck, strike, workshop


def play(seed: int, count: int, share: tuple[int, int], quiet: bool, cache: Path | None = None) -> list[Struck]:
    """Carry out the kills of one share of the plan, and return the results."""
    number, of = share
    done = []
    with workshop(cache) as place:
        for index, plan in enumerate(plans(seed, count)):
            if index % of != number:
                continue
            struck = strike(plan, place)
            done.append(struck)
            if struck.troubles or not quiet:
                print(f"{index:4} {plan} ({struck.role}): {'; '.join(struck.troubles) or struck.what}", flush=True)
    return done


def _side_by_side(arguments: argparse.Namespace) -> tuple[collections.Counter[str], int]:
    base = [sys.executable, "-m", "tests.tools.corpus.kills"]
    base += ["--seed", str(arguments.seed), "--count", str(arguments.count)]
    base += [*(["--quiet"] if arguments.quiet else []), *(["--cache", str(arguments.cache)] if arguments.cache else [])]
    shares = [
        subprocess.Popen(
            [*base, "--share", f"{n}/{arguments.jobs}"],
            stdout=subprocess.PIPE,
            text=True,
        )
        for n in range(arguments.jobs)
    ]
    total: collections.Counter[str] = collections.Counter()
    for each in shares:
        assert each.stdout is not None
        for line in each.stdout:
            if line.startswith("{"):
                total.update(json.loads(line))
            else:
                print(line, end="", flush=True)
        each.wait()
    return total, total["troubles"]


def main() -> int:
    """Carry out the kills and report. Return 1 if one went wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.corpus.kills", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--jobs", type=int, default=4, help="kills side by side; most of their time is waiting")
    parser.add_argument("--quiet", action="store_true", help="tell only of what went wrong")
    parser.add_argument("--cache", type=Path, help="a folder for the library, kept from one call to the next")
    parser.add_argument("--share", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    for one in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        # These signals are ignored in the background and under nohup. All processes started here would inherit that,
        # and tfmemtop could pass none of them on.
        if signal.getsignal(one) is signal.SIG_IGN:
            signal.signal(one, signal.SIG_DFL)
    if arguments.share:
        number, of = map(int, arguments.share.split("/"))
        done = play(arguments.seed, arguments.count, (number, of), arguments.quiet, arguments.cache)
        total = collections.Counter(each.what for each in done)
        total.update(
            kills=len(done), troubles=sum(bool(each.troubles) for each in done), lost=sum(each.lost for each in done)
        )
        print(json.dumps(total))
        return 0
    began = time.monotonic()
    total, troubles = _side_by_side(arguments)
    print(
        f"seed {arguments.seed}, {time.monotonic() - began:.0f} s: "
        + ", ".join(f"{n} {k}" for k, n in sorted(total.items()))
    )
    return int(troubles > 0)


if __name__ == "__main__":
    sys.exit(main())
