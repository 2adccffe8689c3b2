"""Functions that TensorFlow traces again and again."""

from collections.abc import Iterator
from pathlib import PurePath

from tfmemtop.state import State
from tfmemtop.state.model import Hooked
from tfmemtop.state.steps import TRACES_S, Course
from tfmemtop.verdicts.finding import Finding
from tfmemtop.verdicts.look import count, hooked_of_run, over

RETRACED = 5
"""Tracings from which on TensorFlow itself warns: FREQUENT_TRACING_WARNING_THRESHOLD in its polymorphic_function.py."""

CALLS_A_TRACING = 10
"""It looks back over as many calls (FREQUENT_TRACING_WARNING_MAX_CALL_HISTORY); who traces less often has warmed up."""

CALLS_WARMING_UP = 2
"""TensorFlow's own measure, 5 tracings in 10 calls, in a function's first minute: later a few shapes are all known."""

_CODE = (
    "@tf.function(reduce_retracing=True)  # for shapes that change; or",
    "@tf.function(input_signature=[tf.TensorSpec([None, 10], tf.float32)])",
    "def step(x): ...",
    "",
    "step(x, tf.constant(n))  # for Python numbers that change: each new one is a new graph, a tensor is not",
)


def retracing(state: State) -> Iterator[Finding]:
    """A function was traced anew in at least one of ten calls, and often, in the last minute of the run."""
    for hooked in (hooked for _, hooked in hooked_of_run(state) if not over(state, hooked)):
        for course in hooked.steps.courses.values():
            traces, calls, span_s = _lately(state, hooked, course)
            began = course.first.t > _until(state, hooked, course) - TRACES_S
            if traces < RETRACED or calls > traces * (CALLS_WARMING_UP if began else CALLS_A_TRACING):
                continue
            function = course.function
            place = f"{PurePath(function.file).name}:{function.line}"
            of_keras = "keras" in PurePath(function.file).parts
            whose = f"Keras's {function.name} ({place})" if of_keras else f"{place}: {function.name}"
            when = f"{span_s:.0f} s" if span_s >= 2 else "second"
            yield Finding(
                "info" if of_keras else "warning",
                f"{whose} was traced anew in {traces} of {count(calls, 'call')} within the last {when}: each builds a "
                "graph, which takes far longer than a step and stays in memory.",
                "give it tensors instead of Python values, or a fixed input_signature" if not of_keras
                else "make and compile a model once; give it batches of one shape",
                f"{count(function.traces, 'graph')} of {function.name} so far, in {count(function.calls, 'call')}. "
                "tf.function builds a new graph for each new shape or type of a tensor, for each new value of a Python "
                "argument, and for each function that tf.function is called on anew, in a loop say. All graphs are "
                "kept as long as the function lives: host memory rises with them, and constants in them take the "
                "GPU's."
                + (" All models of one program share this function's place in Keras, so that several models made one "
                   "after the other count together." if of_keras else ""),
                () if of_keras else _CODE,
                "retracing",
            )  # fmt: skip


def _lately(state: State, hooked: Hooked, course: Course) -> tuple[int, int, float]:
    """Tracings, calls and seconds of the last minute, or of all the time since the first count if that is less."""
    now = _until(state, hooked, course)
    if course.first.t > now - TRACES_S:
        # What the first count holds happened just before it.
        return course.last.traces, course.last.calls, now - course.first.t
    since = course.before(now - TRACES_S)
    return course.last.traces - since.traces, course.last.calls - since.calls, TRACES_S


def _until(state: State, hooked: Hooked, course: Course) -> float:
    return course.last.t if hooked.ended else state.now
