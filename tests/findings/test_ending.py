"""The finding about a run's end, and the processes that the state keeps after it."""

import signal

from tests import streams as s
from tests.findings.situations import begin, effective, found, reading
from tests.findings.test_exhausted import error
from tests.streams import GIB, MIB
from tfmemtop import events
from tfmemtop.events import StoppingPhase
from tfmemtop.findings.ending import RunEnded
from tfmemtop.findings.finding import Severity
from tfmemtop.findings.memory import AllocationFailed


def ended(number: int | None = None, code: int | None = None) -> events.RunEnd:
    return events.RunEnd(t=12.4, run=1, exit_code=code, signal=number)


def stopping(phase: StoppingPhase) -> events.Stopping:
    return events.Stopping(t=12.0, run=1, phase=phase)


def test_what_tfmemtop_ended_itself_is_no_alarm() -> None:
    ours = found(begin(), stopping(StoppingPhase.TERM), ended(signal.SIGTERM), stopping(StoppingPhase.RELEASED))[
        RunEnded
    ]
    assert ours.severity is Severity.INFO and ours.said.headline == "tfmemtop ended run 1 after 12 s."
    others = found(begin(), ended(signal.SIGTERM), stopping(StoppingPhase.RELEASED))[RunEnded]
    assert others.severity is Severity.WARNING and others.said.headline == "Run 1 ended by SIGTERM after 12 s."
    crashed = found(begin(), stopping(StoppingPhase.TERM), ended(signal.SIGSEGV))[RunEnded]
    assert crashed.severity is Severity.WARNING and "SIGSEGV" in crashed.said.headline


def test_a_run_without_a_hook_is_still_there_when_it_has_ended() -> None:
    bare = [s.session(), s.run(), s.process(0.3, 100), s.process(0.4, 101), s.alive(1.0, 100, 101), s.alive(5.0)]
    state = s.fold([*bare, ended(code=0)])
    assert [pid for pid, process in state.processes.items() if process.gone] == [100]
    hooked = s.fold([*bare[:-2], s.hook(0.8, 101), s.alive(1.0, 100, 101), s.alive(5.0), ended(code=0)])
    assert list(hooked.processes) == [101]
    assert not s.fold([*bare, ended(code=0), s.run(20.0, number=2)]).processes


def test_with_several_processes_the_one_that_ran_out_is_named_first() -> None:
    alone = [*begin(), effective(True), reading(3.0, GIB, pool=GIB)]
    assert found(alone, error())[AllocationFailed].said.headline.startswith("Out of memory: ")
    worker = [s.process(1.0, 200), s.hook(1.2, 200), effective(True, pid=200), reading(3.0, 100 * MIB, pid=200)]
    headline = found(alone, worker, error())[AllocationFailed].said.headline
    assert headline.startswith("Out of memory in process 100: AddV2 asked for 64.0 MiB.")
