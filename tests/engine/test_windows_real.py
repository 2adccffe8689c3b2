"""Windows that the probe recorded of real scripts add up to the byte."""

from pathlib import Path

import msgspec
import pytest

from tests.engine.windows_read import Unpacked
from tfmemtop.engine.sources.window_events import Known, events_of
from tfmemtop.engine.sources.window_file import IN_USE, read_window
from tfmemtop.events import Holders, Opened, Replayed, ScriptPhase, Trace, Window, encode
from tfmemtop.experiments.whatif.course import course_of
from tfmemtop.reports.whatif import basis
from tfmemtop.state.predicted import Predicted

REAL = Path(__file__).parents[1] / "probe" / "windows"


@pytest.mark.parametrize("loop", ["eager", "jit", "keras_fit"])
def test_windows_of_real_scripts_add_up(loop: str) -> None:
    known = Known()
    for opened in ("start", "asked"):
        window = msgspec.json.decode((REAL / f"{loop}.{opened}.json").read_bytes(), type=Window)
        file = read_window(REAL, f"{loop}.{opened}.window", window.bytes)
        events = [*events_of(window, file, known, lambda monotonic: monotonic, t=9.0)]
        holders = [event for event in events if isinstance(event, Holders)]
        assert max(event.peak for event in holders) >= max(record[IN_USE] for record in file.records) / 1.02
        event = holders[-1]
        found = Unpacked(event)
        assert event.lost == 0
        assert max(found.course()) == found.total(event.peak_at) == event.peak and found.course()[0] == event.before
        assert event.steps is not None and event.steps >= 1 and event.ended > event.began
        older = [span for span in found.alive(event.peak_at) if not found.holding(span).window]
        assert sum(found.holding(span).size for span in older) < (0.15 if opened == "start" else 0.4) * event.peak
        parts = [event for event in events if isinstance(event, Trace)]
        assert bool(parts) == (opened == "start")
        if parts:
            assert parts[-1].last and parts[-1].whole and len(parts[-1].steps) >= 3
            assert sum(part.events for part in parts) == len(file.records)
            assert sum(len(encode(part)) for part in parts) < 8 * len(file.records)


def test_the_fullest_moment_of_a_phase_is_kept_beside_the_last_step_and_the_peak() -> None:
    window = msgspec.json.decode((REAL / "keras_fit.start.json").read_bytes(), type=Window)
    file = read_window(REAL, "keras_fit.start.window", window.bytes)
    ended = msgspec.structs.replace(window, last=True)

    def found(*phases: ScriptPhase) -> list[Holders]:
        events = events_of(ended, file, Known(), lambda monotonic: monotonic, t=9.0, phases=phases)
        return [event for event in events if isinstance(event, Holders)]

    began, end = (file.monotonic(at_ns) for at_ns in (file.records[0][0], file.steps[2][1]))
    phase = ScriptPhase(
        t=9.0, pid=window.pid, number=1, name="evaluate", epoch=None, began=began, ended=end, peaks={"CPU:0": 1 << 20}
    )
    without, (*others, kept) = found(), found(phase)
    assert others == without and not any(event.phase for event in without)
    in_use = max(record[IN_USE] for record in file.records if file.monotonic(record[0]) <= end)
    assert (kept.phase, kept.peak) == ("evaluate", in_use) and began <= kept.began <= kept.ended <= end
    moved = Unpacked(kept)
    assert moved.total(kept.peak_at) == kept.peak
    whole = msgspec.structs.replace(phase, ended=file.monotonic(file.records[-1][0]) + 1.0)
    assert found(whole) == without, "its fullest moment is the run's"


@pytest.mark.parametrize(("opened", "is_late"), [("start", False), ("asked", True)])
def test_a_trace_that_begins_late_tells_what_was_in_use_before(opened: str, is_late: bool) -> None:
    window = msgspec.json.decode((REAL / f"keras_fit.{opened}.json").read_bytes(), type=Window)
    file = read_window(REAL, f"keras_fit.{opened}.window", window.bytes)
    begun = msgspec.structs.replace(window, opened=Opened.START)
    events = [*events_of(begun, file, Known(), lambda monotonic: monotonic, t=9.0)]
    course = course_of([event for event in events if isinstance(event, Trace)])
    (holders,) = (event for event in events if isinstance(event, Holders))
    replayed = Replayed(t=1.0, pid=1, device="CPU:0", requested=course.requested, before=course.before)
    said = " ".join(basis(Predicted(1, replayed, None, None, False, None)))
    assert ("The recording began late" in said) is is_late
    if is_late:  # in chunks, which may be larger than the requested bytes
        assert 0.5 * holders.before <= course.before <= holders.before
