"""The kill matrix: ``python -m tests.tools.corpus.kills [--seed N] [--count 400] [--jobs N]``.

Each of our processes gets each signal at random moments. A training counts into a file and prints. It must go on to
its end, its later output must be in the kept file, and nothing may be left over. A training that is read from outside
must not be traced, and must have no descriptor or mapping more than before. The cases in which the design gives
something up are in ``kill_table.py``.
"""

import argparse
import collections
import multiprocessing
import signal
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from tests.tools.corpus.kill_table import plans
from tests.tools.corpus.striking import Struck, strike, workshop


def play(number: int, jobs: int, seed: int, count: int, quiet: bool, cache: Path | None) -> list[Struck]:
    """Carry out every kill of the plan that is the turn of job *number* of *jobs*, and return the results."""
    for one in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        # These signals are ignored in the background and under nohup. All processes started here would inherit that,
        # and tfmemtop could pass none of them on.
        if signal.getsignal(one) is signal.SIG_IGN:
            signal.signal(one, signal.SIG_DFL)
    done = []
    with workshop(cache) as place:
        for index, plan in list(enumerate(plans(seed, count)))[number::jobs]:
            struck = strike(plan, place)
            done.append(struck)
            if struck.troubles or not quiet:
                print(f"{index:4} {plan} ({struck.role}): {'; '.join(struck.troubles) or struck.what}", flush=True)
    return done


def main() -> int:
    """Carry out the kills and report. Return 1 if one went wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.corpus.kills", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--jobs", type=int, default=4, help="kills side by side; most of their time is waiting")
    parser.add_argument("--quiet", action="store_true", help="tell only of what went wrong")
    parser.add_argument("--cache", type=Path, help="a folder for the library, kept from one call to the next")
    words = parser.parse_args()
    began = time.monotonic()
    share = partial(play, jobs=words.jobs, seed=words.seed, count=words.count, quiet=words.quiet, cache=words.cache)
    # Each job takes the place of process 1 for what it starts.
    with ProcessPoolExecutor(words.jobs, multiprocessing.get_context("spawn")) as pool:
        done = [struck for jobs in pool.map(share, range(words.jobs)) for struck in jobs]
    total = collections.Counter(each.what for each in done)
    troubles = sum(bool(each.troubles) for each in done)
    total.update(kills=len(done), troubles=troubles, lost=sum(each.lost for each in done))
    took_s = time.monotonic() - began
    print(f"seed {words.seed}, {took_s:.0f} s: " + ", ".join(f"{n} {k}" for k, n in sorted(total.items())))
    return int(troubles > 0)


if __name__ == "__main__":
    sys.exit(main())
