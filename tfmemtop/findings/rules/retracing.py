"""The rule for functions that TensorFlow traces over and over."""

import re
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import PurePath

from tfmemtop.events import Changed
from tfmemtop.findings.cause import Key, fitting
from tfmemtop.findings.finding import Finding, Said, Severity
from tfmemtop.findings.names import Callsite, argument_changed, line_of, quoted
from tfmemtop.findings.remedy import Action, Remedy
from tfmemtop.findings.rules import rule
from tfmemtop.findings.run_devices import hooked_of_run, superseded
from tfmemtop.state import State
from tfmemtop.state.model import Hooked
from tfmemtop.state.steps import TRACES_S, FunctionCounts
from tfmemtop.units import counted

RETRACED = 5
"""The number of tracings at which TensorFlow itself warns: FREQUENT_TRACING_WARNING_THRESHOLD in its
polymorphic_function.py."""

CALLS_A_TRACING = 10
"""TensorFlow counts tracings over this many calls (FREQUENT_TRACING_WARNING_MAX_CALL_HISTORY). A lower rate means that
the warm-up is over."""

CALLS_WARMING_UP = 2
"""In a function's first minute, TensorFlow's own measure applies: 5 tracings in 10 calls. In that time, a function may
still meet shapes that are new to it; later, a function with few shapes has met all of them."""


class Retraced(Finding, frozen=True):
    """A function of process ``pid`` was traced in ``traces`` of its ``calls`` of the last ``span_s`` seconds.

    ``traces_so_far`` and ``calls_so_far`` are all of its tracings and calls. ``anew`` of these tracings were the first
    tracing of a function that was made anew. ``changed`` are the arguments in which the newest other tracing differed
    from the one before.
    """

    key = Key.RETRACING

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
    def name(self) -> str:
        """The function and its line: ``tf.function `step` (train.py:12)``."""
        whose = f"Keras's {self.function}" if self.of_keras else f"tf.function {quoted(self.function)}"
        return f"{whose} ({line_of(self.defined)})"

    @property
    def of_keras(self) -> bool:
        return "keras" in PurePath(self.defined.file).parts

    @property
    def severity(self) -> Severity:
        return Severity.INFO if self.of_keras else Severity.WARNING

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        if self.of_keras:
            return (Action.COMPILE_ONCE,)
        longer = self.changed and not self.mostly_anew and _kind(self.changed[0]) is _LISTS
        return (Action.ONE_GRAPH if _lengths_differ(self) else Action.STACK_LIST if longer else Action.FIX_ARGUMENTS,)

    @property
    def said(self) -> Said:
        span = f" in the last {self.span_s:.0f} s" if self.traces < self.traces_so_far else ""
        differs = [""]
        if self.changed and not self.mostly_anew:
            first = self.changed[0]
            differs = [f", as {argument_changed(first)}", f", as {quoted(first.argument)} changed", *differs]
        traced = f"{self.name} was traced in {self.traces} of its {counted(self.calls, 'call')}{span}"
        graphs, calls = counted(self.traces_so_far, "graph"), counted(self.calls_so_far, "call")
        explanation = (
            f"{self.function} has {graphs} so far, in {calls}. tf.function builds a new graph for each new shape or "
            "type of a tensor, for each new value of a Python argument, and for each function that tf.function is "
            "called on anew, as in a loop. All graphs are kept as long as the function lives: host memory rises with "
            "them, and their constants take the GPU's."
        )
        if self.of_keras:
            explanation += (
                " All models of one script share this function's place in Keras, so that several models made one after "
                "the other count together."
            )
        return Said(
            fitting(*(f"{traced}{how}; each graph stays in memory." for how in differs)),
            explanation,
            code(self),
            why(self),
        )


@rule(150)
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


_TENSOR = re.compile(r"(?P<dtype>\w+)\[(?P<lengths>\d+(,\d+)*)\]")
"""The text of a tensor as an argument: ``int32[16,99]``."""

_SHAPES = (
    "@tf.function(reduce_retracing=True)  # where shapes change; or",
    "@tf.function(input_signature=[tf.TensorSpec([None, 10], tf.float32)])",
    "def step(x): ...",
)


_NUMBERS = (
    "# a tensor in place of a Python number that changes, which makes a new graph:",
    "step(x, tf.constant(n))",
)


_OBJECTS = (
    "# an object made once, since each new one makes a new graph:",
    "settings = Settings()",
    "for x in batches:",
    "    step(x, settings)",
)


_LISTS = (
    "@tf.function(reduce_retracing=True)",
    "def step(x, past): ...",
    "step(x, tf.stack(past))  # where a list of tensors becomes longer",
)


_ONCE = (
    "step = tf.function(step)  # once, before the loop, not in it",
    "for x in batches:",
    "    step(x)",
)


def code(found: Retraced) -> tuple[str, ...]:
    """Return lines of code to write instead, as far as it is known what differs between the tracings."""
    if found.of_keras:
        return ()
    if found.mostly_anew:
        return _ONCE
    if _lengths_differ(found):
        return _specified(found.changed[0], found.function)
    kinds = {_kind(one) for one in found.changed} or {_SHAPES, _NUMBERS}
    blocks = [block for block in (_SHAPES, _NUMBERS, _OBJECTS, _LISTS) if block in kinds]
    return tuple(line for number, block in enumerate(blocks) for line in (*([""] if number else []), *block))


def _lengths_differ(found: Retraced) -> bool:
    """Return whether the newest tracing differed only in the lengths of one tensor."""
    return not found.mostly_anew and len(found.changed) == 1 and bool(_specified(found.changed[0], found.function))


def _specified(one: Changed, function: str) -> tuple[str, ...]:
    """Return the lines for a tensor of which only lengths differ; empty if *one* is no such argument."""
    before, after = _TENSOR.fullmatch(one.before), _TENSOR.fullmatch(one.after)
    if before is None or after is None or before["dtype"] != after["dtype"]:
        return ()
    pairs = [*zip_longest(before["lengths"].split(","), after["lengths"].split(","))]
    if any(None in pair for pair in pairs) or all(old == new for old, new in pairs):
        return ()
    lengths = ", ".join(new if old == new else "None" for old, new in pairs)
    return (
        "@tf.function(reduce_retracing=True)",
        f"def {function}({one.argument}): ...",
        "# or, with a TensorSpec for each argument:",
        f"# @tf.function(input_signature=[tf.TensorSpec([{lengths}], tf.{after['dtype']})])",
    )


def _kind(one: Changed) -> tuple[str, ...]:
    if "<" in one.before[:1] + one.after[:1]:
        return _OBJECTS
    # A list of tensors has more items, or fewer; a dict's key would be no number.
    if re.search(r"\[\d+\]$", one.argument) and "" in (one.before, one.after) and (one.before + one.after)[-1:] == "]":
        return _LISTS
    return _SHAPES if one.after.endswith("]") else _NUMBERS


def change(one: Changed) -> str:
    """Return how an argument changed: ``x: float32[32,10] → [31,10]``, ``n: 3 → 4``."""
    before, after = one.before, one.after
    if not before or not after:
        return f"{one.argument}: {before or 'none'} → {after or 'none'}"
    if before == after:
        return f"{one.argument}: {before} → another {after}"
    dtype, bracket, extents = after.partition("[")
    if bracket and before.startswith(dtype + bracket):
        after = bracket + extents
    return f"{one.argument}: {before} → {after}"


def why(found: Retraced) -> str:
    """Return what differed between the tracings, in a sentence or two; empty if it is not known."""
    if found.mostly_anew:
        return f"In {found.anew} of the {found.traces_so_far} tf.function was called on it anew."
    if not found.changed:
        return ""
    first = found.changed[0]
    often = f" {first.argument} differed in {first.tracings} of {found.traces_so_far}." if first.tracings > 1 else ""
    return f"The newest differed from the one before in {'; '.join(map(change, found.changed))}.{often}"
