"""How many tries the search for the largest value needs, for many shapes of need, with right and wrong predictions.

``python -m tests.fit.test_largest_shapes`` prints a table with the fewest and the most tries for each shape. The
columns: predictions by a line through two values that passed; the same with a likely value of nearly twice as much;
predictions of at least three times the largest value that passed; predictions hardly above it; no predictions; and a
search that only doubles and halves.
"""

import random
from collections.abc import Callable, Iterator
from math import ceil, inf, log2, sqrt

import pytest

from tfmemtop.experiments.fit.largest import CLOSE, LargestSearch, Prediction, TriedValue, Wanted
from tfmemtop.experiments.fit.search import Result, Tried, TryOutcome
from tfmemtop.units import MIB

Need = Callable[[int], float]
"""A function from a value to the bytes that it needs."""
Predictor = Callable[[Need, list[int]], tuple[int, int, int]]
"""A function that takes a need and the values that have passed, and predicts three values.

All values up to the first one surely pass. The second is likely the largest that passes. None above the third passes.
"""

LIMIT = 1000 * MIB
WANTED = Wanted("batch", 1, 4096)
RIGHT = (5, 20, 70, 120, 300, 610, 1000, 2500, 3900)
"""The largest values that pass."""
LINEAR = ("linear, 5 % fixed", "linear, 40 % fixed")
MILD = "in steps of 8"


def extended(need: Need, passed: list[int], below: float = 0.97) -> tuple[int, int, int]:
    """Predict by a line through the largest value that passed and the smallest one that is at least a quarter of it.

    If no other value is that large, the largest of the others is taken. *below* is the share of the limit that the
    values which surely pass may fill.
    """
    *others, larger = sorted(passed)
    smaller = next((value for value in others if value * 4 >= larger), others[-1])
    each = (need(larger) - need(smaller)) / (larger - smaller)
    if each <= 0:
        return WANTED.highest, WANTED.highest, WANTED.highest
    likely, surely, most = (
        min(WANTED.highest, max(0, int(larger + (LIMIT * room - need(larger)) / each))) for room in (1.0, below, 1.03)
    )
    return min(surely, likely), likely, most


def exact(need: Need, passed: list[int]) -> tuple[int, int, int]:
    """Predict as :func:`extended`, with less doubt."""
    return extended(need, passed, 0.99)


def wide(need: Need, passed: list[int]) -> tuple[int, int, int]:
    """Predict closely what surely passes, but nearly twice as much as likely: seen with recurrent layers on an H200."""
    surely, likely, most = exact(need, passed)
    return surely, min(WANTED.highest, likely * 9 // 5), min(WANTED.highest, most * 2)


def too_high(_: Need, passed: list[int]) -> tuple[int, int, int]:
    """Predict far too much, always."""
    return 3 * max(passed), 4 * max(passed), 5 * max(passed)


def too_low(_: Need, passed: list[int]) -> tuple[int, int, int]:
    """Predict hardly more than what has passed."""
    most = max(passed)
    return most, most + max(1, most // 100), most + max(1, most // 50)


def shapes(right: int) -> Iterator[tuple[str, Need]]:
    """Yield needs that reach the limit just above the value *right*, each after its name."""

    def rising(fixed: float, power: float = 1.0) -> Need:
        return lambda value: LIMIT * (fixed + (1 - fixed) * (value / (right + 0.5)) ** power)

    def stepped(size: int) -> Need:
        each = 0.8 * LIMIT / (ceil(right / size) * size + 0.5)
        return lambda value: 0.2 * LIMIT + each * (ceil(value / size) * size)

    def workspace(share: float, since: float, until: float = inf) -> Need:
        line = rising(0.1)
        left = 1.0 if until < inf else 1 - share
        return lambda value: left * line(value) + share * LIMIT * (since <= value / right < until)

    def noisy(value: int) -> float:
        return rising(0.1)(value) * (1 + 0.04 * (random.Random(value * 7919 + right).random() - 0.5))

    yield LINEAR[0], rising(0.05)
    yield LINEAR[1], rising(0.4)
    yield MILD, stepped(8)
    yield "in steps of 64", stepped(64)
    yield "in powers of two", lambda value: LIMIT * (0.1 + 0.9 * 2.0 ** (ceil(log2(value)) - ceil(log2(right))))
    yield "a workspace of 20 %, from the half on", workspace(0.2, 0.5)
    yield "a workspace of 40 %, near the end", workspace(0.4, 0.9)
    yield "a workspace of 30 %, up to a third", workspace(0.3, 0, 1 / 3)
    yield "convex, power 1.5", rising(0.1, 1.5)
    yield "convex, power 2", rising(0.1, 2)
    yield "concave, power 0.6", rising(0.1, 0.6)
    yield "a cliff", lambda value: LIMIT * (0.1 + 1e-4 * value if value <= right else 2.0)
    yield "noise of 4 %", noisy


def search(need: Need, predicts: Predictor | None) -> LargestSearch:
    """Run a search to its end, with the predictions of *predicts*, as a replayed try gives them, or with none."""
    made, passed = LargestSearch(WANTED, 50), list[int]()
    while (value := made.next()) is not None:
        needs = need(value)
        how = TryOutcome(result=Result.REACHED if needs <= LIMIT else Result.OUT_OF_MEMORY)
        least, kept = (int(needs / 1.02), int(need(1) * 0.8)) if predicts and how.passed else (None, None)
        peak = int(min(needs, LIMIT) * 0.97)
        tried = Tried(limit=None, how=how, duration_s=1.0, peak_in_use=peak, at_least=least, kept=kept)
        made.tell(TriedValue(value, tried, LIMIT))
        if how.passed:
            passed.append(value)
            if predicts is not None and len(passed) > 1:
                made.expect(Prediction(*predicts(need, passed), (1, 2)))
    return made


def doubling_and_halving(need: Need) -> int:
    """Return the number of tries of a search that starts at the same value, and only doubles and halves."""
    value, low, high, tries = LargestSearch(WANTED, 1).next() or 1, 0, WANTED.highest + 1, 0
    while True:
        tries += 1
        low, high = (value, high) if need(value) <= LIMIT else (low, value)
        bounded = low >= WANTED.lowest and high <= WANTED.highest
        if high - low <= (max(1, low // CLOSE) if bounded else 1):
            return tries
        if high > WANTED.highest:
            value = min(low * 2, WANTED.highest)
        else:
            value = max(high // 2, 1) if low < WANTED.lowest else min(max(int(sqrt(low * high)), low + 1), high - 1)


@pytest.mark.parametrize("predicts", [extended, exact, wide, too_high, too_low, None])
@pytest.mark.parametrize("right", RIGHT)
def test_wrong_predictions_cost_two_tries_at_most(right: int, predicts: Predictor | None) -> None:
    for name, need in shapes(right):
        made = search(need, predicts)
        assert made.settled and made.works is not None, name
        assert need(made.works) <= LIMIT and (made.fails is None or need(made.fails) > LIMIT), name
        # If a larger value may need fewer bytes, the search may need one more try.
        more = 3 if name.startswith("noise") else 2
        assert len(made.tried) <= doubling_and_halving(need) + more, (name, [one.value for one in made.tried])


@pytest.mark.parametrize("right", RIGHT)
def test_right_predictions_are_proved_in_six_tries(right: int) -> None:
    for name, need in shapes(right):
        if name in LINEAR or (name == MILD and right >= 600):
            for predicts in (extended, exact, *([wide] if name in LINEAR and right >= 600 else [])):
                made = search(need, predicts)
                assert len(made.tried) <= 6, (name, predicts, [one.value for one in made.tried])
                assert made.works is not None and right <= made.works + max(1, made.works // CLOSE), name


def main() -> None:
    """Print the table."""
    print(f"{'':40}{'line':>8}{'wide':>8}{'too high':>10}{'too low':>10}{'none':>8}{'doubling':>10}")
    for place, (name, _) in enumerate(shapes(RIGHT[0])):
        needs = [[*shapes(right)][place][1] for right in RIGHT]
        columns = [
            [len(search(need, one).tried) for need in needs] for one in (extended, wide, too_high, too_low, None)
        ]
        columns.append([doubling_and_halving(need) for need in needs])
        cells = [f"{min(tries)}-{max(tries)}" for tries in columns]
        print(f"{name:40}{cells[0]:>8}{cells[1]:>8}{cells[2]:>10}{cells[3]:>10}{cells[4]:>8}{cells[5]:>10}")


if __name__ == "__main__":
    main()
