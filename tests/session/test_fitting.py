"""A search for the largest value in a running session. Meanwhile the tries are replayed with other values."""

import asyncio

import pytest

from tests import streams as s
from tests.fit.test_session import BATCH, passing
from tests.streams import GIB, MIB
from tfmemtop import events as ev
from tfmemtop.experiments.fit.largest import Prediction
from tfmemtop.experiments.fit.largest_text import conclusion
from tfmemtop.experiments.fit.plan import make_plan
from tfmemtop.experiments.fit.session import Phase
from tfmemtop.experiments.fit.session_largest import SessionLargest
from tfmemtop.experiments.fit.watch import Goal
from tfmemtop.experiments.session import session as fitting
from tfmemtop.experiments.session.next_run import NextRun
from tfmemtop.experiments.session.session import Fitting
from tfmemtop.experiments.whatif.expected import Expectations, Expected
from tfmemtop.settings import Settings


def begun() -> tuple[Fitting, SessionLargest, list[ev.Command]]:
    """Return a search whose first try has passed and been replayed, and the list of the commands that it sends."""
    sent: list[ev.Command] = []
    made = Fitting(send=sent.append, choose=lambda _: None)
    argv = ["python", "train.py", "{batch}"]
    plan = make_plan(
        argv, Settings(), has_gpus=True, host_memory=64 * GIB, goal=Goal(10.0), tries=6, largest=GIB, wanted=BATCH
    )
    made.begin(plan, NextRun(tuple(argv), Settings()), 1)
    search = made.search
    assert isinstance(search, SessionLargest)
    for event in passing(sent, 2):
        made.take(event)
    return made, search, sent


@pytest.mark.fails_on_purpose
async def test_a_failure_nobody_foresaw_ends_the_replay_and_not_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> bytes:
        raise KeyError("no such pool")

    monkeypatch.setattr(Expectations, "request", fails)
    _, search, sent = begun()
    assert search.phase is Phase.PREDICTING
    await asyncio.sleep(0)
    assert len(sent) == 2 and isinstance(sent[-1], ev.Relaunch)
    assert any("A replay with other values failed: " in line for line in conclusion(search.search, None, None))


async def test_what_a_stopped_search_had_asked_is_not_taken_by_the_one_that_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[asyncio.Future[Expected]] = []

    async def expect(_: bytes) -> Expected:
        asked.append(asyncio.get_running_loop().create_future())
        return await asked[-1]

    monkeypatch.setattr(Expectations, "request", lambda *_: b"")
    monkeypatch.setattr(fitting, "expect", expect)
    made, search, sent = begun()
    await asyncio.sleep(0)
    made.stop()
    made.go_on(2)
    for event in passing(sent, 3):
        made.take(event)
    await asyncio.sleep(0)
    late, newer = asked
    if not late.cancelled():
        late.set_result(Expected(1, 2, 3, (64, 97)))
    await asyncio.sleep(0)
    assert late.cancelled() and search.phase is Phase.PREDICTING and search.search.prediction is None
    newer.set_result(Expected(400, 420, 430, (64, 97)))
    for _ in range(3):
        await asyncio.sleep(0)
    assert search.search.prediction == Prediction(400, 420, 430, (64, 97)) and len(sent) == 3


# The settings of the next run, as the keys change them.


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (Settings(cpu_pool=400 * MIB), Settings(cpu_pool=200 * MIB)),
        (Settings(memory_limit=400 * MIB), Settings(memory_limit=200 * MIB)),
    ],
)
def test_without_a_gpu_a_new_limit_replaces_that_of_the_command_line(before: Settings, after: Settings) -> None:
    """A kernelspec can have either option. ``compare`` shows both runs of a kernel with the same one."""
    state = s.fold([s.session()])
    changed = NextRun(("python", "a.py"), before).with_limit("200M", state)
    assert changed.settings == after
    assert changed.with_limit("", state).settings == Settings()
