"""The search for the largest value finds it, and in few tries."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfmemtop.experiments.fit.largest import CLOSE, LargestSearch, Wanted, parse_wanted
from tfmemtop.experiments.fit.search import Result, Tried, TryOutcome
from tfmemtop.units import MIB


def search(
    fixed: float, each: float, limit: int, wanted: Wanted, tries: int = 20, room: float = 1.0, *, replayed: bool = False
) -> LargestSearch:
    """Run the whole search, for a program that needs *fixed* bytes plus *each* bytes times the value.

    The program can use the share *room* of the limit. With *replayed*, each try that passed also has the figures of its
    replay.
    """
    made = LargestSearch(wanted, tries, limit)
    while trial := made.next():
        assert trial.value is not None and trial.limit == limit
        need = int(fixed + each * trial.value)
        passed = need <= limit * room
        made.tell(
            Tried(
                limit=limit,
                value=trial.value,
                how=TryOutcome(Result.REACHED if passed else Result.OUT_OF_MEMORY),
                duration_s=1.0,
                peak_in_use=need if passed else limit,
                at_least=int(need / room / 1.02) if replayed and passed else None,
            )
        )
    return made


SEARCHED = [(150, 1.3, 2048, 1.0, 4), (90, 40, 16384, 0.97, 7), (6000, 90, 81000, 0.93, 8), (20, 0.2, 512, 0.99, 7)]
PREDICTED = [(20, 0.3, 512, 0.85, 4), (5, 0.13, 512, 0.8, 4), (300, 2.0, 512, 0.9, 7), (60, 0.15, 512, 0.97, 4)]
"""MiB at any value and for each unit of it, the limit in MiB, the share of it that has room, and the tries.

Of the second, a replay tells what each try needed at least, which spares some tries.
"""


@pytest.mark.parametrize(
    ("sizes", "replayed"), [*((row, False) for row in SEARCHED), *((row, True) for row in PREDICTED)]
)
def test_few_tries_are_enough(sizes: tuple[float, float, int, float, int], replayed: bool) -> None:
    fixed, each, limit, room, tries = sizes
    wanted = Wanted("batch", 1, 4096)
    made = search(fixed * MIB, each * MIB, limit * MIB, wanted, tries=tries, room=room, replayed=replayed)
    right = int((limit * room - fixed) / each)
    assert made.settled and made.found is not None
    assert made.found <= right <= made.found * (1 + 1 / CLOSE) + 1


@given(st.integers(0, 900), st.integers(1, 400), st.integers(1, 300), st.integers(1, 5000), st.floats(0.5, 1.0))
def test_what_it_finds_worked_and_what_it_names_failed(
    fixed: int, each: int, lowest: int, more: int, room: float
) -> None:
    wanted = Wanted("n", lowest, lowest + more)
    made = search(fixed * MIB, each * MIB / 10, 1000 * MIB, wanted, tries=60, room=room)
    right = int((1000 * MIB * room - fixed * MIB) / (each * MIB / 10))
    assert made.settled
    if made.found is None:
        assert right < lowest
    else:
        assert made.found <= min(right, wanted.highest)
        assert made.found == wanted.highest or made.found * (1 + 1 / CLOSE) + 1 >= right
    assert len({one.value for one in made.tried}) == len(made.tried), "nothing is tried twice"


def test_peaks_near_the_limit_do_not_tell_what_grows() -> None:
    made = LargestSearch(Wanted("batch", 1, 4096), 9, 320 * MIB)
    for value, peak in ((64, 21), (97, 30), (984, 275), (1003, 275.5)):
        how = TryOutcome(Result.REACHED)
        made.tell(Tried(limit=320 * MIB, value=value, how=how, duration_s=1.0, peak_in_use=int(peak * MIB)))
    assert made.growth is not None and made.growth.each == pytest.approx(0.27 * MIB, rel=0.02)


def test_a_peak_that_does_not_grow_is_searched_by_halving() -> None:
    made = search(100 * MIB, 0, 2048 * MIB, Wanted("batch", 1, 300))
    assert (made.found, made.fails, made.growth) == (300, None, None)


def test_a_range_and_its_place() -> None:
    wanted = parse_wanted("batch=1..4096")
    assert wanted == Wanted("batch", 1, 4096)
    command = ["python", "train.py", "--batch-size={batch}", "{other}"]
    assert wanted.placed(command, 32) == ["python", "train.py", "--batch-size=32", "{other}"]
    assert wanted.is_in(command) and not wanted.is_in(["python"])
