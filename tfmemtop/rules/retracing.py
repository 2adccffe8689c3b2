"""The rule for functions that TensorFlow traces over and over."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

from tfmemtop.events import Changed
from tfmemtop.rules.callsite import Callsite
from tfmemtop.rules.finding import Finding, Question, Severity
from tfmemtop.rules.remedy import Action, Remedy
from tfmemtop.rules.run_devices import hooked_of_run, superseded
from tfmemtop.state import State
from tfmemtop.state.model import Hooked
from tfmemtop.state.steps import TRACES_S, FunctionCounts

RETRACED = 5
"""The number of tracings at which TensorFlow itself warns: FREQUENT_TRACING_WARNING_THRESHOLD in its
polymorphic_function.py."""

CALLS_A_TRACING = 10
"""TensorFlow counts tracings over this many calls (FREQUENT_TRACING_WARNING_MAX_CALL_HISTORY). A lower rate means that
the warm-up is over."""

CALLS_WARMING_UP = 2
"""In a function's first minute, TensorFlow's own measure applies: 5 tracings in 10 calls. In that time, a function may
still meet shapes that are new to it; later, a function with few shapes has met all of them."""


@dataclass(frozen=True, slots=True)
class Retraced(Finding):
    """A function of process ``pid`` was traced in ``traces`` of its ``calls`` of the last ``span_s`` seconds.

    ``traces_so_far`` and ``calls_so_far`` are all of its tracings and calls. ``anew`` of these tracings were the first
    tracing of a function that was made anew. ``changed`` are the arguments in which the newest other tracing differed
    from the one before.
    """

    answers = Question.EFFICIENTLY

    pid: int
    function: str
    defined: Callsite
    traces: int
    calls: int
    span_s: float
    traces_so_far: int
    calls_so_far: int
    anew: int = 0
    changed: tuple[Changed, ...] = ()

    @property
    def mostly_anew(self) -> bool:
        """Whether most graphs belong to functions made anew, so that no argument is to blame."""
        return self.anew > 1 and 2 * self.anew > self.traces_so_far

    @property
    def of_keras(self) -> bool:
        return "keras" in PurePath(self.defined.file).parts

    @property
    def severity(self) -> Severity:
        return Severity.INFO if self.of_keras else Severity.WARNING

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        return (Remedy(Action.COMPILE_ONCE if self.of_keras else Action.FIX_ARGUMENTS),)


def retracing(state: State) -> Iterator[Retraced]:
    """Find functions that, in the last minute of the run, were traced often, and in at least one of ten calls."""
    for pid, hooked in hooked_of_run(state):
        if superseded(state, hooked):
            continue
        for course in hooked.steps.courses.values():
            traces, calls, span_s = _lately(state, hooked, course)
            began = course.first.t > _until(state, hooked, course) - TRACES_S
            if traces < RETRACED or calls > traces * (CALLS_WARMING_UP if began else CALLS_A_TRACING):
                continue
            function = course.function
            yield Retraced(
                pid,
                function.name,
                Callsite(function.file, function.line),
                traces=traces,
                calls=calls,
                span_s=span_s,
                traces_so_far=function.traces,
                calls_so_far=function.calls,
                anew=function.anew,
                changed=tuple(function.changed),
            )


def _lately(state: State, hooked: Hooked, course: FunctionCounts) -> tuple[int, int, float]:
    """Return tracings, calls and seconds of the last minute, or since the first count if that is shorter."""
    now = _until(state, hooked, course)
    if course.first.t > now - TRACES_S:
        # The tracings and calls in the first count happened just before it.
        return course.last.traces, course.last.calls, now - course.first.t
    since = course.before(now - TRACES_S)
    return course.last.traces - since.traces, course.last.calls - since.calls, TRACES_S


def _until(state: State, hooked: Hooked, course: FunctionCounts) -> float:
    return course.last.t if hooked.ended else state.now
