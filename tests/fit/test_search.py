"""The search alone, with simulated scripts: it ends within its number of tries and finds a limit that works."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfmemtop.experiments.fit.search import CLOSE_BYTES, CLOSE_SHARE, LimitSearch, Result, Tried, TryOutcome
from tfmemtop.units import MIB

GIB = 1024 * MIB


def went(passed: bool) -> TryOutcome:
    return TryOutcome(result=Result.REACHED if passed else Result.OUT_OF_MEMORY)


def tried(limit: int | None, need: int, peak: int, pool: int) -> Tried:
    """Return the result of a try of a script that needs a limit of *need* bytes."""
    passed = limit is None or limit >= need
    return Tried(
        limit=limit,
        how=went(passed),
        duration_s=1.0,
        peak_in_use=min(peak, limit or peak),
        pool=min(pool, limit or pool),
    )


def search(need: int, peak: int, pool: int, **bounds: int) -> LimitSearch:
    found = LimitSearch(**({"tries": 8, "ceiling": 140 * GIB} | bounds))
    while trial := found.next():
        found.tell(tried(trial.limit, need, peak, pool))
    return found


sizes = st.integers(1, 60 * 1024).map(lambda mib: mib * MIB)
shares = st.floats(0.0, 1.0)


@given(peak=sizes, need=shares, pool=shares, tries=st.integers(1, 12))
def test_what_is_found_has_worked_in_a_bounded_number_of_tries(peak: int, need: float, pool: float, tries: int) -> None:
    # A script needs at least half of its peak, because chunks may be twice as large as requested. It may need somewhat
    # more than its pool had without a limit, because under a limit it gets other regions.
    needed = int(peak * (0.5 + need))
    found = search(needed, peak, int(peak * (1 + pool)), tries=tries)
    assert len(found.tried) <= tries
    limits = [one.limit for one in found.tried[1:]]
    assert len(set(limits)) == len(limits)
    assert all(limit is not None and limit % MIB == 0 and limit <= 140 * GIB for limit in limits)
    if found.found is not None:
        assert found.found >= needed
        assert found.advice is not None and found.found <= found.advice <= found.found * 1.05 + 17 * MIB


@given(peak=sizes, need=shares, spare=shares)
def test_a_little_less_than_what_is_found_does_not_work(peak: int, need: float, spare: float) -> None:
    needed = int(peak * (0.5 + need))
    pool = int(needed + (2 * peak - needed) * spare)
    found = search(needed, peak, pool)
    assert found.found is not None
    assert found.found >= needed > found.found - max(found.found * CLOSE_SHARE, CLOSE_BYTES) - MIB


@given(need=sizes, smallest=sizes, largest=sizes)
def test_bounds_are_kept(need: int, smallest: int, largest: int) -> None:
    smallest, largest = sorted((smallest, largest))
    found = search(need, need, 2 * need, smallest=smallest, largest=largest)
    assert all(one.limit is not None and smallest <= one.limit <= largest for one in found.tried)
    assert len({one.limit for one in found.tried}) == len(found.tried)
    assert (found.found is None) == (need > largest)
    assert found.advice is None or found.advice <= largest


def test_a_script_that_takes_its_whole_limit_at_once_is_found_too() -> None:
    # With growth off, the pool of the first try takes the whole card.
    found = search(need=3 * GIB, peak=3 * GIB, pool=139 * GIB)
    assert found.found == 3 * GIB
    assert found.failed_below is not None and found.failed_below >= 2.85 * GIB
    assert len(found.tried) <= 8


def test_nothing_is_tried_after_a_first_try_that_fails_or_tells_nothing() -> None:
    for first in (
        Tried(limit=None, how=went(False), duration_s=1.0, peak_in_use=GIB),
        Tried(limit=None, how=went(True), duration_s=1.0),
    ):
        found = LimitSearch(tries=8)
        found.tell(first)
        assert found.next() is None
        assert found.found is found.advice is None


def test_with_two_tries_the_second_is_the_likeliest_to_work() -> None:
    found = search(need=900 * MIB, peak=600 * MIB, pool=1000 * MIB, tries=2)
    assert [one.limit for one in found.tried] == [None, 1000 * MIB]
    assert found.found == 1000 * MIB
    # No smaller limit was tried, so none is reported to fail.
    assert found.failed_below is None


def test_a_limit_that_failed_once_counts_whatever_passed_below_it() -> None:
    found = LimitSearch(tries=8)
    for limit, passed in ((None, True), (600 * MIB, True), (900 * MIB, False), (1000 * MIB, True)):
        found.tell(Tried(limit=limit, how=went(passed), duration_s=1.0, peak_in_use=600 * MIB, pool=1000 * MIB))
    assert (found.found, found.failed_below) == (1000 * MIB, 900 * MIB)


@given(need=sizes, between=shares, over=shares)
def test_what_is_predicted_is_proved_in_few_tries(need: int, between: float, over: float) -> None:
    # The real need lies between the lower end and the upper end, which are at most 10 % apart here.
    surely = need + int(need * 0.1 * between)
    first = msgspec.structs.replace(tried(None, need, need, int(need * (1 + over))), surely=surely, at_least=need)
    found = LimitSearch(tries=8, ceiling=140 * GIB)
    found.tell(first)
    while trial := found.next():
        found.tell(tried(trial.limit, need, need, 2 * need))
    assert found.found is not None and found.found >= need and found.settled
    # Both ends are tried: the first passes, the second fails.
    assert len(found.tried) <= 4
    assert found.tried[1].limit is not None and found.tried[1].limit >= surely


def test_a_wrong_prediction_costs_tries_and_no_truth() -> None:
    first = msgspec.structs.replace(tried(None, 8 * GIB, 7 * GIB, 9 * GIB), surely=6 * GIB, at_least=5 * GIB)
    found = LimitSearch(tries=8, ceiling=140 * GIB)
    found.tell(first)
    while trial := found.next():
        found.tell(tried(trial.limit, 8 * GIB, 7 * GIB, 9 * GIB))
    assert found.found is not None and 8 * GIB <= found.found <= 8.6 * GIB


@pytest.mark.parametrize("limit", [8 * GIB, 8 * GIB + 1000])
def test_a_limit_that_has_passed_is_not_tried_again_where_more_is_predicted(limit: int) -> None:
    first = msgspec.structs.replace(tried(limit, 7 * GIB, 7 * GIB, 8 * GIB), surely=9 * GIB, at_least=7 * GIB)
    found = LimitSearch(tries=8, largest=limit)
    found.tell(first)
    second = found.next()
    assert second and second.limit is not None and second.limit < 8 * GIB
