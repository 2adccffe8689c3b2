"""What a run waits for before its pools can be shown. The screen of a plain run is in ``tests/ui/test_sizes.py``."""

from tests import streams as s
from tfmemtop import events
from tfmemtop.settings import Settings
from tfmemtop.state import State
from tfmemtop.state.waiting import Stage, waiting


def made(error: str | None = None, **variables: str) -> events.Initialised:
    return events.Initialised(t=2.0, pid=100, file="/t.py", line=3, error=error, variables=variables)


def run(*more: events.Event, settings: Settings | None = None) -> State:
    return s.fold([s.session(), s.run(settings=settings), s.process(0.3, 100), *more])


def test_with_a_pool_nothing_is_waited_for() -> None:
    state = run(s.hook(1.0, 100), made(TF_CPU_ALLOCATOR_USE_BFC="true"))
    found = waiting(state)
    assert found is not None and found.stage is Stage.MADE  # its pool comes with the first reading
    state = run(s.hook(1.0, 100), made(), s.effective(2.1, 100), s.allocator(2.2, 100, in_use=1, peak=1))
    assert waiting(state) is None


def test_a_pool_that_the_user_chose_is_on_its_way() -> None:
    found = waiting(run(settings=Settings(cpu_pool=s.GIB)))
    assert found is not None and found.pool_chosen and found.stage is Stage.NOT_IMPORTED


def test_beside_a_gpu_there_is_no_haste_to_say_that_there_is_no_pool() -> None:
    """The devices of a TF1 session are reported at once, but their pools only after the library has been built."""
    state = run(s.device(), s.hook(1.0, 100), made())
    found = waiting(state)
    assert found is not None and found.stage is Stage.MADE
    found = waiting(run(s.device(), s.hook(1.0, 100), made(), s.alive(9.0, 100)))
    assert found is not None and found.stage is Stage.NO_POOL
    building = events.Probe(t=2.5, pid=100, state=events.ProbeState.BUILDING)
    found = waiting(run(s.device(), s.hook(1.0, 100), made(), building, s.alive(9.0, 100)))
    assert found is not None and found.stage is Stage.MADE


def test_what_keeps_it_from_coming() -> None:
    found = waiting(run(s.hook(1.0, 100), made("RuntimeError: no")))
    assert found is not None and found.stage is Stage.REFUSED
    kept_out = events.HookAbsence(events.Absence.ISOLATED)
    process = s.process(0.3, 100)
    seen = events.Process(
        t=0.4, pid=100, ppid=1, user="ada", command=process.command, started=1.0, run=1, hook_absence=kept_out
    )
    found = waiting(run(seen))
    assert found is not None and found.stage is Stage.NOT_INSIDE and found.absence == kept_out


def test_of_several_processes_those_that_go_on_count() -> None:
    ended = events.HookEnd(t=3.0, pid=100, reason=events.HookEnding.EXIT)
    found = waiting(run(s.hook(1.0, 100), made(), ended, s.process(3.5, 101), s.hook(4.0, 101, tensorflow=None)))
    assert found is not None and found.stage is Stage.IMPORTING
