"""A search in a live session, driven by its events: the commands that it sends to the engine, and what stops it."""

import pytest

from tests import streams as s
from tfmemtop import events as ev
from tfmemtop.events import replayed
from tfmemtop.experiments.fit.largest import Wanted
from tfmemtop.experiments.fit.plan import ImpossibleSearch, Plan, Sought, parse_sought
from tfmemtop.experiments.fit.session import Phase, SessionFit
from tfmemtop.experiments.fit.watch import Goal
from tfmemtop.settings import Settings

MIB, GIB = s.MIB, s.GIB
NOT_RELAUNCHED = ev.Notice(
    t=101.0, key="relaunch", level=ev.Level.ERROR, kind=ev.NoticeKind.NOT_RELAUNCHED, detail="gone"
)
NEED = 700 * MIB


def plan(tries: int = 4, settings: Settings | None = None) -> Plan:
    return Plan(
        command=["python", "train.py"],
        settings=settings or Settings(),
        has_gpus=True,
        host_memory=64 * GIB,
        goal=Goal(seconds=10.0),
        tries=tries,
        ceiling=140 * GIB,
    )


class Session:
    """An engine that carries out each command, and a script that needs 700 MiB."""

    def __init__(self, fit: SessionFit) -> None:
        self.fit = fit
        self.t = 100.0
        self.run = 3
        self.limits: list[int | None] = []
        self.asked: list[ev.Command] = []

    def give(self, event: ev.Event) -> None:
        self.asked += self.fit.take(event)

    def begin(self) -> None:
        self.asked += self.fit.begin(self.run)

    def start(self) -> None:
        """Carry out the requested relaunch: the memory of the previous run is released, then the script starts."""
        (relaunch,) = self.asked
        assert isinstance(relaunch, ev.Relaunch)
        self.asked = []
        self.limits.append(relaunch.settings.memory_limit)
        self.t += 1.0
        self.give(ev.Stopping(t=self.t, run=self.run, phase=ev.StoppingPhase.RELEASING))
        self.give(ev.Stopping(t=self.t, run=self.run, phase=ev.StoppingPhase.RELEASED))
        self.run += 1
        pid = 1000 + self.run
        self.give(s.run(t=self.t, number=self.run, pid=pid, settings=relaunch.settings))
        self.give(s.hook(self.t + 0.5, pid))

    def train(self) -> None:
        """Run the script until the search stops it, or until it runs out of memory."""
        limit, pid = self.limits[-1], 1000 + self.run
        for _ in range(60):
            self.t += 0.25
            if limit is not None and limit < NEED:
                self.give(ev.Output(t=self.t, run=self.run, text="(GPU_0_bfc) ran out of memory trying to alloc"))
                self.give(ev.Output(t=self.t, run=self.run, text="ate 64.00MiB\r\n"))
                self.give(ev.RunEnd(t=self.t + 9.0, run=self.run, exit_code=1, signal=None))
                self.t += 9.0
                return
            self.give(s.allocator(self.t, pid, in_use=600 * MIB, peak=650 * MIB, pool=960 * MIB))
            if self.asked:
                break
        (stop,) = self.asked
        assert isinstance(stop, ev.Stop) and not stop.quit
        self.asked = []
        self.give(ev.Stopping(t=self.t, run=self.run, phase=ev.StoppingPhase.TERM, deadline=self.t + 5.0))
        self.give(ev.RunEnd(t=self.t + 0.1, run=self.run, exit_code=None, signal=15))


def going() -> tuple[SessionFit, Session]:
    """Return a search that has begun, and its session."""
    session = Session(SessionFit(plan()))
    session.begin()
    return session.fit, session


def test_tries_are_runs_of_the_session_until_the_limit_is_known() -> None:
    fit, session = going()
    while session.asked:
        session.start()
        session.train()
    assert fit.phase is Phase.DONE and not fit.stopped
    # Growth is on unless the user has chosen otherwise: without growth, each pool would be as large as its limit.
    assert session.limits[0] is None and session.limits[1] == 650 * MIB
    assert [one.passed for one in fit.search.tried] == [limit is None or limit >= NEED for limit in session.limits]
    assert fit.search.tried[1].how.text == "ended with exit code 1, out of memory"
    assert fit.search.found is not None and NEED <= fit.search.found <= 960 * MIB
    assert len(session.limits) <= 4 and fit.number == len(session.limits)


def test_the_first_try_is_recorded_and_judged_once_it_is_replayed() -> None:
    fit, session = going()
    (first,) = session.asked
    assert isinstance(first, ev.Relaunch)
    session.start()
    session.give(s.allocator(200.0, 1004, in_use=MIB, peak=640 * MIB, pool=960 * MIB))
    trace = ev.Trace(t=201.0, pid=1004, device="GPU:0", part=0, last=True, whole=True, events=0)
    session.give(trace)
    session.give(ev.RunEnd(t=202.0, run=4, exit_code=0, signal=None))
    assert fit.phase is Phase.REPLAYING and "replaying" in fit.progress and not session.asked
    least = [ev.SmallestLimits(True, True, 720 * MIB, 690 * MIB)]
    whole = replayed.Outcome(True, 0, 640 * MIB, 960 * MIB, 960 * MIB, 5, 0, 10)
    present = ev.SettingReplayed(True, True, None, whole)
    session.give(ev.Replayed(t=203.0, pid=1004, device="GPU:0", present=present, smallest=least))
    (second,) = session.asked
    assert isinstance(second, ev.Relaunch)
    assert second.settings.memory_limit == 720 * MIB


def test_it_can_be_stopped_and_go_on_without_repeating_itself() -> None:
    fit, session = going()
    session.start()
    session.train()
    session.start()
    fit.stop()
    assert not fit.going and fit.can_go_on
    session.give(s.allocator(999.0, 1005, in_use=MIB))
    assert session.asked == []  # the current run is left alone
    session.begin()
    session.start()
    assert session.limits == [None, 650 * MIB, 650 * MIB] and len(fit.search.tried) == 1


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (s.run(t=150.0, number=5, pid=5), "another run was started meanwhile"),
        (ev.Stopping(t=150.0, run=4, phase=ev.StoppingPhase.TERM, deadline=160.0), "the run was ended by hand"),
    ],
)
def test_what_others_do_to_the_session_ends_the_search(event: ev.Event, why: str) -> None:
    fit, session = going()
    session.start()
    session.give(event)
    assert (fit.stopped, fit.going, session.asked) == (why, False, [])


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (NOT_RELAUNCHED, "not relaunched: gone"),
        (
            ev.Stopping(
                t=101.0, run=3, phase=ev.StoppingPhase.HELD, held=ev.StillHeld(ev.Leftover.LISTED, 0, GIB, [7])
            ),
            "the next try would not have had all the memory: GPU 0 still lists process 7, 1.0 GiB",
        ),
        (s.run(t=101.0, number=4, settings=Settings(growth="off")), "another run was started meanwhile"),
    ],
)
def test_a_try_that_cannot_be_made_as_meant_ends_the_search(event: ev.Event, why: str) -> None:
    fit, session = going()
    session.asked = []
    session.give(event)
    assert (fit.stopped, fit.going) == (why, False)


def test_a_plan_keeps_what_the_user_has_chosen() -> None:
    assert plan().settings_of(GIB) == Settings(growth="on", memory_limit=GIB)
    chosen = Settings(growth="off", memory_limit=4 * GIB, environment={"BATCH": "8"})
    assert plan(settings=chosen).settings_of(None) == Settings(growth="off", environment={"BATCH": "8"})
    cpu = Plan(command=["x"], settings=Settings(memory_limit=GIB), has_gpus=False, host_memory=GIB * 8)
    assert cpu.settings_of(None) == Settings(cpu_pool=8 * GIB) and not cpu.on_gpu
    assert cpu.settings_of(2 * GIB) == Settings(cpu_pool=2 * GIB)
    with pytest.raises(ImpossibleSearch) as refused:
        plan(settings=Settings(allocator="cuda_malloc_async"))
    assert str(refused.value).startswith("fit needs the allocator bfc")


@pytest.mark.parametrize(
    ("text", "sought"),
    [
        ("", Sought(Goal(30.0), 8)),
        ("45 s", Sought(Goal(45.0), 8)),
        ("2min, 5 tries", Sought(Goal(120.0), 5)),
        ("200 steps", Sought(Goal(steps=200), 8)),
        ("1 try, 1 step", Sought(Goal(steps=1), 1)),
        ("1.5h", Sought(Goal(5400.0), 8)),
        ("batch=1..4096, 5 steps", Sought(Goal(steps=5), 8, Wanted("batch", 1, 4096))),
    ],
)
def test_the_goal_is_read_as_it_is_written(text: str, sought: Sought) -> None:
    assert parse_sought(text) == sought


@pytest.mark.parametrize(
    "text", ["soon", "30", "0 s", "0.5 steps", "25 h", "60 tries", "0 tries", "-5 s", "batch=1..", "a=1..2, b=1..2"]
)
def test_what_is_no_goal_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(ImpossibleSearch) as refused:
        parse_sought(text)
    assert text in str(refused.value) and "give" in str(refused.value)


# A search for the largest value in a live session.


BATCH = Wanted("batch", 1, 4096)
SMALLEST = [ev.SmallestLimits(True, True, 800 * MIB, 780 * MIB)]
PRESENT = ev.SettingReplayed(True, True, GIB, replayed.Outcome(True, 0, 700 * MIB, GIB, GIB, 5, 0, 10))


def begun() -> tuple[SessionFit, list[ev.Command]]:
    plan = Plan(
        command=["python", "train.py", "{batch}"],
        settings=Settings(),
        has_gpus=True,
        host_memory=64 * GIB,
        goal=Goal(seconds=10.0),
        tries=6,
        largest=GIB,
        wanted=BATCH,
    )
    fit = SessionFit(plan)
    return fit, fit.begin(1)


def passing(asked: list[ev.Command], number: int) -> list[ev.Event]:
    """Return the events of the try that was requested last: it runs to its end, and is replayed."""
    relaunch = asked[-1]
    assert isinstance(relaunch, ev.Relaunch) and relaunch.settings.memory_limit == GIB
    t, pid = 100.0 * number, 1000 + number
    return [
        s.run(t=t, number=number, pid=pid, settings=relaunch.settings),
        s.hook(t + 0.1, pid),
        s.allocator(t + 1.0, pid, in_use=MIB, peak=700 * MIB, pool=GIB),
        ev.Trace(t=t + 2.0, pid=pid, device="GPU:0", part=0, last=True, whole=True, events=0),
        ev.RunEnd(t=t + 3.0, run=number, exit_code=0, signal=None),
        ev.Replayed(t=t + 4.0, pid=pid, device="GPU:0", present=PRESENT, smallest=SMALLEST),
    ]


def test_each_try_that_passed_leads_to_a_larger_value() -> None:
    fit, asked = begun()
    for number, value in ((2, "129"), (3, "259")):
        *events, replayed = passing(asked, number)
        for event in events:
            assert fit.take(event) == []
        assert fit.phase is Phase.REPLAYING
        asked = fit.take(replayed)
        assert [one.argv for one in asked if isinstance(one, ev.Relaunch)] == [["python", "train.py", value]]
    assert fit.number == 3 and fit.search.found == 129
