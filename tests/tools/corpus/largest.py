"""Is the largest batch found, and in few tries? ``python -m tests.tools.corpus.largest [--tries 6] [NAME…]``.

Each Keras model in :mod:`.batched` is searched by ``tfmemtop fit --largest`` for the largest batch that passes
under a limit of the CPU's BFC pool. The search is right if the batch that it found passed, and one that is a 50th
larger, or larger by 1, failed.
"""

import argparse
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.tools.corpus.batched import PLACES, SCRIPTS
from tfmemtop.experiments.fit.largest import CLOSE

_TFMEMTOP = str(Path(sys.executable).with_name("tfmemtop"))
_RANGE = "batch=1..4096"


@dataclass(frozen=True, slots=True)
class Searched:
    """The result for one model: the values that were tried, in their order, and whether each of them passed.

    ``predicted`` has two values of the first prediction: that up to which all pass surely, and the likely largest.
    """

    name: str
    tries: tuple[tuple[int, bool], ...]
    found: int | None
    predicted: tuple[int, int] | None = None

    @property
    def right(self) -> bool:
        """Whether the found value passed, no smaller value failed, and a value that is hardly larger failed."""
        failed = min((value for value, passed in self.tries if not passed), default=None)
        if self.found is None or failed is None or (self.found, True) not in self.tries:
            return False
        return self.found < failed <= self.found + max(1, self.found // CLOSE)

    def __str__(self) -> str:
        tries = ", ".join(f"{value} {'passed' if passed else 'failed'}" for value, passed in self.tries)
        verdict = "right" if self.right else "NOT RIGHT"
        said = "" if self.predicted is None else "; first predicted: surely {}, likely {}".format(*self.predicted)
        found = f"{self.name}: {self.found} under {PLACES[self.name]}M, {verdict}"
        return f"{found}, in {len(self.tries)} tries: {tries}{said}"


def search(name: str, tries: int) -> Searched:
    """Search the largest batch of the model *name* in at most *tries* tries.

    Raises:
        RuntimeError: ``tfmemtop fit`` ended with an unexpected exit code.
    """
    options = ("--largest", _RANGE, "--to", f"{PLACES[name]}M", "--tries", str(tries), "--json")
    command = [_TFMEMTOP, "fit", *options, "--", sys.executable, SCRIPTS[name], "{batch}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1, 3):
        raise RuntimeError(done.stderr)
    told = json.loads(done.stdout)
    first = told["predicted"]
    predicted = None if first is None else (first["surely"], first["likely"])
    return Searched(name, tuple((one["value"], one["passed"]) for one in told["tries"]), told["value"], predicted)


def main() -> int:
    """Search, and print a line for each model. Return 1 if one result is not right."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", metavar="NAME", nargs="*", help=f"of: {', '.join(PLACES)}")
    parser.add_argument("--tries", type=int, default=6)
    arguments = parser.parse_args()
    wrong = 0
    for name in arguments.names or PLACES:
        searched = search(name, arguments.tries)
        print(searched, flush=True)
        wrong += not searched.right
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
