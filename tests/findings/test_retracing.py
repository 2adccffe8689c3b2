"""Retracing is reported while it goes on, with the function's place. A function that has warmed up is not reported."""

from collections.abc import AsyncIterator

import msgspec
import pytest

from tests import streams as s
from tests.findings import situations as at
from tests.findings.situations import HEALTHY, actions, found
from tests.streams import MIB
from tests.windows import Window
from tfmemtop import events
from tfmemtop.experiments.session import Batch
from tfmemtop.experiments.session.session import Session
from tfmemtop.findings.finding import Severity
from tfmemtop.findings.names import Callsite
from tfmemtop.findings.remedy import Action
from tfmemtop.findings.rules.retracing import Retraced
from tfmemtop.findings.rules.xla import Nameless, ReportMissing
from tfmemtop.settings import Settings
from tfmemtop.state import State, apply


def counts(t: float, calls: int, traces: int, file: str = "/home/ada/train.py") -> events.Functions:
    return events.Functions(t=t, pid=100, functions=[events.Traced("step", calls, traces, file, 12)])


def test_a_function_that_is_traced_at_nearly_every_call() -> None:
    finding = found(HEALTHY, counts(80.0, 1, 1), counts(90.0, 8, 6))[Retraced]
    assert finding.severity is Severity.WARNING and actions(finding) == [Action.FIX_ARGUMENTS]
    assert finding.defined == Callsite("/home/ada/train.py", 12)
    assert (finding.function, finding.traces, finding.calls) == ("step", 6, 8)
    assert Retraced not in found(HEALTHY, counts(80.0, 1, 1), counts(90.0, 8, 4)), "TensorFlow itself bears four"


def test_it_goes_when_it_ceases() -> None:
    shapes = [counts(30.0 + i, 2 * i + 2, i + 1) for i in range(8)]
    assert Retraced in found(HEALTHY[:8], shapes)
    assert Retraced not in found(HEALTHY[:8], shapes, counts(45.0, 200, 8)), "many calls that are not traced"
    assert Retraced not in found(HEALTHY[:8], shapes, s.alive(120.0, 100)), "a minute without"


def test_a_few_shapes_met_in_the_first_minute_are_no_matter() -> None:
    shapes = [counts(50.0 + i, 7 * i + 1, min(i + 1, 8)) for i in range(30)]
    assert Retraced not in found(HEALTHY[:8], shapes[:7])
    assert Retraced not in found(HEALTHY[:8], shapes)
    # A function that goes on like this is reported.
    later = [counts(50.0 + i, 7 * i + 1, i + 1) for i in range(90)]
    assert Retraced in found(HEALTHY[:8], later)


def test_keras_own_functions_are_a_hint_only() -> None:
    file = "/site-packages/keras/src/backend/tensorflow/trainer.py"
    finding = found(HEALTHY, counts(85.0, 12, 6, file))[Retraced]
    assert finding.severity is Severity.INFO and actions(finding) == [Action.COMPILE_ONCE]


CHANGES = [
    (["x", "float32[32,10]", "float32[31,10]", 5], "x: float32[32,10] → [31,10]", "reduce_retracing"),
    (["x", "int32[16,98]", "int32[16,99]", 1], "x: int32[16,98] → [16,99]", "TensorSpec([16, None], tf.int32)"),
    (["x", "float32[3]", "float16[3]", 1], "x: float32[3] → float16[3]", "reduce_retracing"),
    (["n", "3", "4", 1], "n: 3 → 4", "tf.constant(n)"),
    (["settings", "<Settings>", "<Settings>", 1], "settings: <Settings> → another <Settings>", "Settings()"),
    (["more", "", "4", 1], "more: none → 4", "tf.constant(n)"),
    (["past[12]", "", "float32[4,2]", 1], "past[12]: none → float32[4,2]", "tf.stack(past)"),
    (["past['of']", "", "float32[4,2]", 1], "past['of']: none → float32[4,2]", "TensorSpec([None, 10]"),
    (["past[12]", "", "4", 1], "past[12]: none → 4", "tf.constant(n)"),
]


@pytest.mark.parametrize(("changed", "text", "code"), CHANGES, ids=[text for _, text, _ in CHANGES])
def test_what_changed_is_told(changed: list[object], text: str, code: str) -> None:
    def grown(t: float, calls: int, traces: int) -> events.Functions:
        told = msgspec.convert(["step", calls, traces, "/home/ada/train.py", 12, 1, 1, [changed]], events.Traced)
        return events.Functions(t=t, pid=100, functions=[told])

    said = found(HEALTHY, grown(80.0, 1, 1), grown(90.0, 8, 6))[Retraced].said
    assert f"before in {text}." in said.figures and code in "\n".join(said.code)
    assert ("x differed in 5 of 6." in said.figures) == (changed[-1] == 5)


def test_functions_made_anew_are_told() -> None:
    made = events.Traced("step", 8, 8, "/home/ada/train.py", 12, anew=8)
    said = found(HEALTHY, counts(80.0, 1, 1), events.Functions(t=90.0, pid=100, functions=[made]))[Retraced].said
    assert "In 8 of the 8 tf.function was called on it anew." in said.figures and "before the loop" in said.code[0]


# If a large buffer has no name, XLA's report is offered. No run makes this report unless the user chose it.


BUFFER = 600 * MIB + 4


def window(size: int = BUFFER, name: str = "", *, before: bool = False) -> events.Holders:
    """Return the window of a step with 400 MiB of variables, and one allocation of *size* bytes."""
    made = Window()
    made.has(400 * MIB, "")
    if before:
        made.has(size, name)
    made.free(made.allocate(1 * MIB if before else size, name))
    return made.done()


def cluster(**fields: object) -> events.XlaCluster:
    return events.XlaCluster(**{"t": 9.0, "pid": 100, "name": "step", "module": 7} | fields)  # type: ignore[arg-type]


def run(*parts: events.Event, settings: Settings | None = None) -> list[events.Event]:
    return [*at.begin(settings), at.effective(True), *parts]


def test_most_of_a_peak_without_a_name_is_offered_a_report() -> None:
    found = at.found(run(window()))
    one = found[Nameless]
    assert (one.bytes, one.peak) == (BUFFER, 1000 * MIB + 256)
    assert one.remedies == (Action.XLA_REPORT,)
    assert "600.0 MiB" in one.said.text and "XLA" in one.said.explanation


@pytest.mark.parametrize(
    "parts",
    [
        [window(390 * MIB)],  # less than half
        [window(name="model/dense/MatMul")],
        [window(before=True)],  # allocated before: it may be anything
        [window(), events.Functions(t=9.0, pid=100, functions=[events.Traced("step", 9, 1, "t.py", 12)])],  # no XLA
        [window(), cluster(temporary=BUFFER)],  # the buffer is known
        [window(), cluster(module=-1, name="", missing=events.XlaMissing.USERS_FOLDER)],  # it cannot be known
    ],
)
def test_and_nothing_else_is(parts: list[events.Event]) -> None:
    assert Nameless not in at.found(run(*parts))


def test_that_of_a_whole_function_is_nameless_too() -> None:
    assert Nameless in at.found(run(window(name="__inference_one_step_on_data_1368")))


@pytest.mark.parametrize("why", events.XlaMissing)
def test_a_report_that_is_missing_says_why(why: events.XlaMissing) -> None:
    one = at.found(run(cluster(missing=why, detail="THIS")))[ReportMissing]
    assert one.said.text.startswith("There is no report of XLA's buffers of step: ")


class Live:
    """A source that is live: it reaches a script."""

    live = True

    def __init__(self, *parts: events.Event) -> None:
        self.state = State()
        for event in parts:
            apply(self.state, event)

    async def batches(self) -> AsyncIterator[Batch]:
        yield []

    async def send(self, command: events.Command) -> None:
        raise ConnectionError

    async def close(self) -> None:
        return


def next_settings(session: Session) -> Settings:
    assert session.next is not None
    return session.next.settings


def test_a_run_that_reports_is_followed_by_one_that_does_and_nothing_is_preset() -> None:
    """A report slows the steps that XLA compiles, so no run makes one unless the user chose it."""
    assert next_settings(Session(Live(*run(window(), settings=Settings(xla_report=True))))).xla_report
    assert not next_settings(Session(Live(*run(window())))).xla_report
