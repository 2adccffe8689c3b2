"""A search for the largest value in a live session: it waits while recorded tries are replayed with other values."""

import pytest

from tests import streams as s
from tfmemtop import events as ev
from tfmemtop.events import replayed
from tfmemtop.experiments.fit.impossible_search import ImpossibleSearch
from tfmemtop.experiments.fit.largest import Prediction, Wanted
from tfmemtop.experiments.fit.plan import Sought, impossible_search_text, make_plan, parse_sought
from tfmemtop.experiments.fit.session import Phase
from tfmemtop.experiments.fit.session_largest import SessionLargest
from tfmemtop.experiments.fit.watch import Goal
from tfmemtop.settings import Settings
from tfmemtop.ui.screens.fit_text import conclusion

MIB, GIB = s.MIB, s.GIB
BATCH = Wanted("batch", 1, 4096)
SMALLEST = [ev.SmallestLimits(True, True, 800 * MIB, 780 * MIB)]
PRESENT = ev.SettingReplayed(True, True, GIB, replayed.Outcome(True, 0, 700 * MIB, GIB, GIB, 5, 0, 10))


def begun() -> tuple[SessionLargest, list[ev.Command]]:
    plan = make_plan(
        ["python", "train.py", "{batch}"],
        Settings(),
        has_gpus=True,
        host_memory=64 * GIB,
        goal=Goal(seconds=10.0),
        tries=6,
        largest=GIB,
        wanted=BATCH,
    )
    fit = SessionLargest(plan, BATCH)
    return fit, fit.begin(1)


def passing(asked: list[ev.Command], number: int) -> list[ev.Event]:
    """Return the events of the try that was requested last: it runs to its end, and is replayed."""
    relaunch = asked[-1]
    assert isinstance(relaunch, ev.Relaunch) and relaunch.trace and relaunch.settings.memory_limit == GIB
    t, pid = 100.0 * number, 1000 + number
    return [
        s.run(t=t, number=number, pid=pid, settings=relaunch.settings),
        s.hook(t + 0.1, pid),
        s.allocator(t + 1.0, pid, in_use=MIB, peak=700 * MIB, pool=GIB),
        ev.Trace(t=t + 2.0, pid=pid, device="GPU:0", part=0, last=True, whole=True, events=0),
        ev.RunEnd(t=t + 3.0, run=number, exit_code=0, signal=None),
        ev.Replayed(t=t + 4.0, pid=pid, device="GPU:0", present=PRESENT, smallest=SMALLEST),
    ]


def passes(fit: SessionLargest, asked: list[ev.Command], number: int) -> list[ev.Command]:
    """Give *fit* the events of :func:`passing`. Return the commands that it sends after the last of them."""
    *events, replayed = passing(asked, number)
    for event in events:
        assert fit.take(event) == []
    assert fit.phase is Phase.REPLAYING
    return fit.take(replayed)


def test_each_try_that_passed_is_followed_by_a_prediction() -> None:
    fit, asked = begun()
    assert passes(fit, asked, 2) == [] and fit.phase is Phase.PREDICTING
    asked = fit.predicted(None)  # one try alone predicts nothing
    assert [one.argv for one in asked if isinstance(one, ev.Relaunch)] == [["python", "train.py", "129"]]
    assert passes(fit, asked, 3) == []
    (third,) = fit.predicted(Prediction(400, 420, 430, (64, 129)))
    assert isinstance(third, ev.Relaunch) and third.argv == ["python", "train.py", "410"]
    assert (fit.done, fit.number) == (2, 3)


def test_another_run_ends_the_search_while_it_is_predicted() -> None:
    fit, asked = begun()
    passes(fit, asked, 2)
    fit.take(s.run(t=300.0, number=3, pid=7))
    assert not fit.going and fit.stopped and fit.predicted(Prediction(1, 2, 3, (1, 2))) == []


def test_what_is_typed() -> None:
    assert parse_sought("batch=1..4096, 5 steps") == Sought(Goal(steps=5), 8, BATCH)
    assert parse_sought("30 s, 4 tries") == Sought(Goal(30.0), 4)
    for text in ("batch=1..", "a=1..2, b=1..2"):
        with pytest.raises(ImpossibleSearch) as refused:
            parse_sought(text)
        assert (
            impossible_search_text(refused.value)
            == f"{text}: give one name and a range of whole numbers, such as batch=1..4096"
        )


def test_a_try_without_a_pool_ends_the_search_with_its_reason() -> None:
    fit, asked = begun()
    first, hook, _, _, over, _ = passing(asked, 2)
    for event in (first, hook, over):
        assert fit.take(event) == []
    assert not fit.going and not fit.can_go_on and fit.command[-1] == "{batch}"
    said = conclusion(fit)
    assert said[:2] == [
        "Nothing was found: the try with batch=64 proves nothing.",
        "tfmemtop did not see TensorFlow use GPU memory. Such a try proves nothing: the limit had no effect.",
    ]
