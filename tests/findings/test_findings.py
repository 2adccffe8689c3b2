"""The texts of findings: every kind has one, and a few are checked completely."""

import signal
from collections.abc import Hashable

import pytest

from tests import streams as s
from tests.findings.situations import HEALTHY, begin, effective, found, reading
from tests.findings.test_exhausted import error, moment
from tests.streams import GIB, MIB
from tests.ui.shown import RECORDINGS
from tfmemtop import events
from tfmemtop.events import StoppingPhase, recording
from tfmemtop.events.runs import Ending, Way
from tfmemtop.findings.cause import LONGEST, Key, shortened
from tfmemtop.findings.finding import Finding, Group, RuleFailed, Severity
from tfmemtop.findings.judgement import findings, judged, kinds
from tfmemtop.findings.names import Place, spot
from tfmemtop.findings.remedy import Action, raise_limit
from tfmemtop.findings.rules.ending import MemoryReleasing, RunEnded, ending
from tfmemtop.findings.rules.notices import Noticed
from tfmemtop.findings.rules.out_of_memory import AllocationFailed
from tfmemtop.findings.rules.pool import TightLimit
from tfmemtop.state import State, apply


def test_every_kind_of_finding_has_words() -> None:
    assert len(kinds()) > 25
    assert not [kind.__name__ for kind in kinds() if kind.said is Finding.said]


@pytest.mark.fails_on_purpose
def test_nothing_is_ruled_out_where_a_rule_has_failed() -> None:
    ended = events.RunEnd(t=40.0, run=1, exit_code=1, signal=None)
    state = s.fold([*begin(), ended])
    cause, _ = judged(state, [RuleFailed("leak", ValueError("no such part"))], going=False)
    assert cause.key is Key.UNKNOWN and "no such part" in cause.text


def test_a_remedy_is_said_with_its_option() -> None:
    assert Action.SET_LIMIT.elsewhere == "set a limit (--memory-limit SIZE)"
    assert Action.GROWTH_ON.elsewhere == "turn growth on (--growth on)"
    assert raise_limit(GIB, on_cpu=True).elsewhere == "set a larger pool than 1.0 GiB (--cpu-pool SIZE)"
    assert Action.COMPILE_ONCE.elsewhere == Action.COMPILE_ONCE.text


def test_places_are_told_apart() -> None:
    def place(place: Place) -> str:
        return TightLimit(place, 2 * GIB, 2 * GIB).said.text.partition(": the peak")[0]

    assert place(Place(1, "GPU:0")) == "GPU 1"
    assert place(Place(1, "GPU:2", shared=True, pid=200)) == "GPU:2 on GPU 1, process 200"
    assert place(Place(None, "CPU:0")) == "CPU pool"
    assert place(Place(None, "GPU:3")) == "GPU:3"


def test_a_long_file_name_leaves_room_for_what_helps() -> None:
    short = spot(f"/a/train_{'x' * 90}_v2.py", 7)
    assert len(short) <= 40 and short.startswith("train_") and short.endswith("_v2.py:7")
    assert spot("/a/train.py", 7) == "train.py:7"


def test_of_a_fragmented_pool_on_the_cpu_nothing_is_said_that_helps_only_on_gpus() -> None:
    def failed(name: str, requested: int = 64 * MIB, limit: int | None = None) -> AllocationFailed:
        free = moment(2 * GIB - requested - 36 * MIB, 2 * GIB, requested - MIB, name=name)
        pool = reading(29.9, 2 * GIB - MIB, pool=2 * GIB, limit=limit, name=name)
        return found(begin(), pool, free, error(requested=requested, name=name))[AllocationFailed]

    on_gpu, on_cpu = failed("GPU:0").said.explanation, failed("CPU:0").said.explanation
    assert "cuda_malloc_async" in on_gpu and "growth off" in on_gpu
    assert Action.IN_PARTS in failed("CPU:0", GIB, 2 * GIB).remedies, "so large a request hardly ever finds one chunk"
    assert "cuda" not in on_cpu and "growth" not in on_cpu and "What helps: shapes that do not change" in on_cpu


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("a" * LONGEST, "a" * LONGEST),
        (f"{'a' * 98}. {'b' * 58}. Last.", f"{'a' * 98}. {'b' * 58}."),
        (f"{'a' * 98}. {'b' * 60}.", f"{'a' * 98}."),
        ("a line\nbreak\x1b[2m", "a line break?[2m"),
        (f"{'many ' * 40}words", f"{'many ' * 31}…"),
    ],
)
def test_a_text_that_is_too_long_loses_its_last_sentences_then_words(text: str, short: str) -> None:
    assert shortened(text) == short


def test_the_end_of_a_run_comes_with_the_keys_for_the_next() -> None:
    ended = RunEnded(2, Ending(Way.EXIT, 1), 65.0)
    assert ended.said.text == "Run 2 ended with exit code 1 after 1 min 5 s. Showing its final state."
    assert ended.severity is Severity.WARNING
    assert [remedy.keys for remedy in Group((ended,)).remedies] == [("R",), ("G", "L", "A", "V", "E"), ("q",)]


# No rule fires where nothing is wrong.


SAID_ANYWAY = {(RunEnded,), (MemoryReleasing,), (Noticed, "nvml")}
"""Findings that are no complaints: how a run ended, and that this machine has no GPU."""


def test_a_healthy_run_is_left_in_peace() -> None:
    assert found(HEALTHY) == []


@pytest.mark.parametrize(
    ("name", "runs"),
    [("h200-settings", {2, 3, 5}), ("cpu-demo", {1}), ("h200-two-cards", {1}), ("h200-four-cards", {1})],
)
def test_recorded_healthy_runs_are_left_in_peace_at_every_moment(name: str, runs: set[int]) -> None:
    path = RECORDINGS / f"{name}.jsonl"
    state, last, told = State(), 0.0, set[Hashable]()
    for event in recording.read(path).events():
        apply(state, event)
        if event.t >= last + 1 and state.run and state.run.run in runs:
            last = event.t
            told |= {finding.kind for finding in findings(state)}
    assert told <= SAID_ANYWAY


# The finding about a run's end, and the processes that the state keeps after it.


def ended(number: int | None = None, code: int | None = None) -> events.RunEnd:
    return events.RunEnd(t=12.4, run=1, exit_code=code, signal=number)


def stopping(phase: StoppingPhase) -> events.Stopping:
    return events.Stopping(t=12.0, run=1, phase=phase)


def test_what_tfmemtop_ended_itself_is_no_alarm() -> None:
    ours = found(begin(), stopping(StoppingPhase.TERM), ended(signal.SIGTERM), stopping(StoppingPhase.RELEASED))[
        RunEnded
    ]
    assert ours.severity is Severity.INFO and ours.said.headline.startswith("tfmemtop ended run 1")
    others = found(begin(), ended(signal.SIGTERM), stopping(StoppingPhase.RELEASED))[RunEnded]
    assert others.severity is Severity.WARNING and "SIGTERM after 12 s" in others.said.headline
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
    assert "process 100: AddV2" in found(alone, worker, error())[AllocationFailed].said.headline


# How a run ended: the text for it, which is the same everywhere.


@pytest.mark.parametrize(
    ("exit_code", "signal", "oom_killed", "words"),
    [
        (0, None, False, "ended with exit code 0"),
        (None, 11, False, "ended by SIGSEGV"),
        (None, 64, False, "ended by SIGRTMAX"),
        (None, 40, False, "ended by signal 40"),
        (139, None, False, "ended with exit code 139 (SIGSEGV)"),
        (255, None, False, "ended with exit code 255"),
        (None, 9, True, "killed by the kernel: host memory ran out"),
        (137, None, True, "killed by the kernel: host memory ran out"),
        (None, None, False, "ended with an unknown exit code"),
    ],
)
def test_every_ending_has_its_words(exit_code: int | None, signal: int | None, oom_killed: bool, words: str) -> None:
    end = events.RunEnd(t=9.0, run=1, exit_code=exit_code, signal=signal, oom_killed=oom_killed)
    assert ending(end.ending) == words
