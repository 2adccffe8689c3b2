"""The fuzzers: ``python -m tests.tools.corpus.fuzz [--seed N] [--count N] [hook|flood|commands|recording …]``.

``hook``, ``flood`` and ``commands`` send over the real sockets to a real engine; the messages of ``flood`` fit their
bounds, and are as large as these allow. ``recording`` calls, in this process, the code that the commands call. There
must be no crash, nothing may take over 2 s, memory must be bounded, and the good messages sent in between must arrive.
Without a kind all run, two at a time; ``--count`` is for all of them together.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from tests.tools.corpus import fuzz_engine, fuzz_inside

KINDS: dict[str, Callable[[int, int], tuple[list[str], str]]] = {
    "hook": fuzz_engine.hook,
    "flood": fuzz_engine.flood,
    "commands": fuzz_engine.commands,
    "recording": fuzz_inside.recording,
}
SHARES = {"hook": 0.5, "flood": 0.05, "commands": 0.3, "recording": 0.15}
"""The share of each kind in the messages of a whole run."""


def play(kind: str, seed: int, count: int) -> list[str]:
    """Send *count* messages of a kind and print the result. Return what went wrong."""
    began = time.monotonic()
    troubles, figures = KINDS[kind](seed, count)
    took = time.monotonic() - began
    print(f"{kind:10} seed {seed} {count:8} messages {took:6.1f} s  {figures}", flush=True)
    for trouble in troubles:
        print(f"    {trouble}", flush=True)
    return troubles


def main() -> int:
    """Run the kinds named on the command line. Return 1 if something went wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.corpus.fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=2_000_000)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)}; all if none")
    arguments = parser.parse_args()
    if unknown := set(arguments.kinds) - set(KINDS):
        parser.error(f"there is no {', '.join(sorted(unknown))}")
    if len(arguments.kinds) == 1:
        return int(bool(play(arguments.kinds[0], arguments.seed, arguments.count)))
    kinds = arguments.kinds or list(KINDS)
    total = sum(SHARES[kind] for kind in kinds)
    again = [sys.executable, "-m", "tests.tools.corpus.fuzz", "--seed", str(arguments.seed), "--count"]
    with ThreadPoolExecutor(2) as pool:
        codes = pool.map(
            lambda kind: subprocess.call([*again, str(round(arguments.count * SHARES[kind] / total)), kind]), kinds
        )
    return int(any(codes))


if __name__ == "__main__":
    sys.exit(main())
