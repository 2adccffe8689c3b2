"""Do the replay's predictions come true? ``python -m tests.tools.corpus.whatif [--times 1] [--bisect] [NAME…]``.

Each script is traced once with a pool of 4 GiB on the CPU, where TensorFlow's BFC allocator always grows. From that
trace alone the smallest limits are predicted: *surely* (replayed as it was recorded, and in other orders of the
threads) and *at least* (with all the waiting that could help). Then the script runs under five limits around these,
without tfmemtop. At and above *surely* no run may fail. Below *at least* no run may pass. Where a run passes, the pool
must be within 2 % of the prediction.

With ``--bisect`` more runs find the smallest limit that really passes, to the MiB. It must lie between the two limits,
and within 3 % or 8 MiB of *at least*.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from tests.tools.corpus.predicted import SCRIPTS
from tests.whatif.traced import attempt, recorder, trace
from tfmemtop.experiments.whatif.course import Course, course_of
from tfmemtop.experiments.whatif.settings import Present
from tfmemtop.experiments.whatif.table import replayed
from tfmemtop.experiments.whatif.waiting import runs_of
from tfmemtop.probe.build import REPLAY, build
from tfmemtop.probe.replaying import Question, ReplayAnswer, run
from tfmemtop.units import MIB, format_short

_POOL_MIB = 4096
_BELOW, _ABOVE = 0.03, 0.05
_POOL_SHARE = 0.02
_NEAR_SHARE, _NEAR_MIB = 0.03, 8  # the distance to *at least* within which the smallest limit that passes must lie


@dataclass(frozen=True, slots=True)
class Tried:
    """A real run under *limit* MiB: whether it passed, and its pool in bytes. ``said_…``: what the replay predicts."""

    limit: int
    passed: bool
    pool: int | None
    said_fits: bool | None
    said_pool: int

    @property
    def pool_holds(self) -> bool:
        """Whether the pool is within 2 % of the prediction. True for a run that failed."""
        return self.pool is None or abs(self.pool - self.said_pool) <= _POOL_SHARE * self.said_pool

    def __str__(self) -> str:
        said = {True: "yes", False: "no", None: "perhaps"}[self.said_fits]
        pool = "" if self.pool is None else f", pool {format_short(self.pool)} of {format_short(self.said_pool)}"
        return f"{self.limit}M said {said}, {'passed' if self.passed else 'failed'}{pool}"


@dataclass(frozen=True, slots=True)
class Proof:
    """One script: its predicted limits in MiB, and the real runs.

    ``exact``: whether the replay of the present setting gave the measured figures. ``smallest``: the smallest limit
    that really passed, ``None`` if it was not searched. If a script needed more than was replayed, ``exact`` is
    ``None``, and ``surely`` is the pool that it reached, or ``None`` with another growth.
    """

    name: str
    events: int
    took_s: float
    exact: bool | None
    at_least: int
    surely: int | None
    tried: tuple[Tried, ...]
    smallest: int | None = None

    @property
    def near(self) -> bool:
        """Whether the smallest limit that passed is between the two limits, near the lower one. True if not known."""
        most = max(self.at_least * (1 + _NEAR_SHARE), self.at_least + _NEAR_MIB)
        if self.smallest is None or self.exact is None or self.surely is None:
            return True
        return self.at_least <= self.smallest <= min(most, self.surely)

    @property
    def is_broken(self) -> bool:
        """Whether any result differs from the prediction."""
        return bool(self.broken) or self.exact is False or not self.near

    @property
    def broken(self) -> list[Tried]:
        """The runs that differ from the prediction."""
        return [
            tried
            for tried in self.tried
            if (tried.limit < self.at_least and tried.passed)
            or (self.surely is not None and tried.limit >= self.surely and not (tried.passed and tried.pool_holds))
        ]


def prove(name: str, tensorflow: Path, program: Path, folder: Path, times: int = 1, *, bisects: bool = False) -> Proof:
    """Trace the script called *name*, predict its limits, and run it *times* under each of five limits.

    With *bisects*, also find the smallest limit that passes.
    """
    library = recorder(tensorflow, folder)
    parts, measured = trace(SCRIPTS[name], library, folder, _POOL_MIB)
    course = course_of(parts)
    began = time.monotonic()
    told = replayed(course, program, Present(growth=True, limit=_POOL_MIB * MIB, collects=False))
    took = time.monotonic() - began
    least = told.least(growth=True)
    assert told.present is not None and least is not None, told.unreplayed
    found = told.present.in_order
    exact = (found.peak, found.pool, found.largest_free) == (measured.peak, measured.pool, measured.largest_free)
    at_least, surely = least.at_least // MIB, least.surely // MIB
    tried = [
        _try(name, limit, course, program, tensorflow, folder)
        for limit in around(at_least, surely)
        for _ in range(times)
    ]
    smallest = None
    if bisects:
        known = [(one.limit, one.passed) for one in tried]
        smallest = bisect(known, lambda limit: attempt(SCRIPTS[name], library, folder, limit) is not None)
    return Proof(name, len(course.events), took, exact, at_least, surely, tuple(tried), smallest)


def bisect(known: Sequence[tuple[int, bool]], passes: Callable[[int], bool]) -> int:
    """Return the smallest limit in MiB that *passes*; 1 MiB less fails. *known* has limits, and whether they passed."""
    good = min(limit for limit, passed in known if passed)
    bad = max((limit for limit, passed in known if not passed and limit < good), default=0)
    while bad < good - 1:
        # Go down in small steps from a limit that passes: each failure takes the 10 s for which TensorFlow waits.
        middle = max((bad + good) // 2, good - max(1, good // 32))
        good, bad = (middle, bad) if passes(middle) else (good, middle)
    return good


def around(at_least: int, surely: int | None) -> list[int]:
    """Return five limits in MiB: below the lower one, at it, between, at the upper one and above, if that is known."""
    below = max(1, at_least - max(1, round(at_least * _BELOW)))
    if surely is None:
        return sorted({below, at_least})
    wanted = (below, at_least, (at_least + surely) // 2, surely, surely + max(1, round(surely * _ABOVE)))
    return sorted(set(wanted))


def _try(name: str, limit: int, course: Course, program: Path, tensorflow: Path, folder: Path) -> Tried:
    asked = [Question(True, False, limit * MIB)]
    (said,) = run(program, course.events, course.steps, asked, runs=runs_of(course))
    assert isinstance(said, ReplayAnswer)
    fits = True if said.in_order.fits else None if said.waiting.fits else False
    outcome = said.in_order if said.in_order.fits else said.waiting
    measured = attempt(SCRIPTS[name], recorder(tensorflow, folder), folder, limit)
    return Tried(limit, measured is not None, measured.peak_pool if measured else None, fits, outcome.peak_pool)


def lines(proof: Proof) -> Iterator[str]:
    """Yield the lines to print for *proof*."""
    outgrown = proof.exact is None
    upper = "not predicted" if proof.surely is None else f"{'worked' if outgrown else 'surely'} {proof.surely}M"
    exact = (
        "needed more than was replayed" if outgrown else f"present setting {'equal' if proof.exact else 'NOT equal'}"
    )
    yield f"{proof.name}: {proof.events} events, {proof.took_s:.1f} s; {exact}; at least {proof.at_least}M, {upper}"
    for tried in proof.tried:
        yield f"    {tried}{'  NOT AS PREDICTED' if tried in proof.broken else ''}"
    if proof.smallest is not None:
        yield f"    smallest that passed {proof.smallest}M{'' if proof.near else '  NOT NEAR'}"


def main() -> int:
    """Prove the scripts, and print a line for each. Return 1 if a result differs from the prediction."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", metavar="NAME", nargs="*", help=f"of: {', '.join(SCRIPTS)}")
    parser.add_argument("--times", type=int, default=1, help="how often each limit is tried")
    parser.add_argument("--bisect", action="store_true", help="look for the smallest limit that passes")
    arguments = parser.parse_args()
    spec = find_spec("tensorflow")
    assert spec is not None and spec.origin is not None
    tensorflow = Path(spec.origin).parent
    built = build(tensorflow, version("tensorflow"), REPLAY)
    if built.state != "built":
        print(built.unbuilt)
        return 1
    broken = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.names or SCRIPTS:
            proof = prove(name, tensorflow, Path(built.path), Path(folder), arguments.times, bisects=arguments.bisect)
            print("\n".join(lines(proof)), flush=True)
            broken += proof.is_broken
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
