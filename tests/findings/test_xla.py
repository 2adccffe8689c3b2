"""If a large buffer has no name, XLA's report is offered. No run makes this report unless the user chose it."""

from collections.abc import AsyncIterator

import pytest

from tests.findings import situations as at
from tests.streams import MIB
from tests.windows import Window
from tfmemtop import events
from tfmemtop.experiments.session.session import Session
from tfmemtop.experiments.session.source import Batch
from tfmemtop.findings.remedy import Action
from tfmemtop.findings.xla import Nameless, ReportMissing
from tfmemtop.settings import Settings
from tfmemtop.state import State, apply

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
    assert [remedy.action for remedy in one.remedies] == [Action.XLA_REPORT]
    assert "600.0 MiB" in one.said.text and "XLA" in one.said.explanation


@pytest.mark.parametrize(
    "parts",
    [
        [window(390 * MIB)],  # less than half
        [window(name="model/dense/MatMul")],
        [window(before=True)],  # allocated before: it may be anything
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
