"""The texts that are printed without a screen: the table of --once, the list of attach, the summary of a recording."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests import streams as s
from tests.streams import GIB, MIB
from tests.tools.bench.machine import session as the_day
from tests.tools.bench.recording import write
from tfmemtop import events as ev
from tfmemtop.cli import Refusal
from tfmemtop.cli import sessions as cli_sessions
from tfmemtop.cli.attach import choose
from tfmemtop.cli.once import table
from tfmemtop.cli.sessions import fold_recording, report_events, spacing_s
from tfmemtop.engine.stream.folders import SessionInfo
from tfmemtop.events.machine import Workload
from tfmemtop.events.recording import read
from tfmemtop.findings.review import review
from tfmemtop.reports.summary import summarise
from tfmemtop.reports.why import page
from tfmemtop.state.figures import figures


def test_what_a_process_belongs_to_has_a_column_if_it_is_known() -> None:
    plain = [s.device(), s.device_reading(0.3, {7: GIB, 8: GIB}), s.process(0.4, 7, command="python a.py")]
    assert not any("WORKLOAD" in line for line in table(plain))
    lines = list(
        table([*plain, replace(s.process(0.4, 8, command="python b.py"), workload=Workload(job="812", step="0"))])
    )
    (head,) = (line for line in lines if "WORKLOAD" in line)
    shown = {line.split()[-1]: line[head.index("WORKLOAD") :] for line in lines if "python" in line}
    assert {name: text.split("  ")[0] for name, text in shown.items()} == {"a.py": "—", "b.py": "job 812.0"}


def test_each_pool_is_told_with_whose_it_is() -> None:
    pool = s.allocator(0.5, 8, GIB, name="CPU:0")
    lines = list(table([s.process(0.4, 8, command="python b.py"), pool, s.allocator(0.5, 9, GIB, name="CPU:0")]))
    known, unknown = (next(line for line in lines if line.split()[:1] == [pid]) for pid in ("8", "9"))
    assert known.endswith("python b.py") and unknown.endswith("—")


@pytest.fixture
def engine() -> Iterator[int]:
    """A process without children, like the engine of a script that has ended."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        yield process.pid


def session(id: str, *command: str, engine: int | None = None) -> SessionInfo:
    return SessionInfo(
        id=id, pid=engine or os.getpid(), started=1.7e9, command=list(command), socket="/s", output_path=None
    )


@pytest.mark.programs
def test_attach_takes_the_newest_that_runs_or_the_one_that_is_meant(engine: int) -> None:
    one, two = session("abc12", "python", "train.py"), session("abd34", engine=engine)
    assert choose([one], None) is one
    assert choose([two, one], None) is one
    assert choose([one, two], None) is one, "the script of the newest does not run"
    assert choose([two, session("ccc56", "sh", engine=engine)], None).id == "ccc56"
    assert choose([one, two], "abd34") is two
    assert choose([one, two], "abc") is one


@pytest.mark.programs
def test_attach_names_a_session_when_it_cannot_choose(engine: int) -> None:
    found = [session("abc12", "python", "my train.py", engine=engine), session("abd34", engine=engine)]
    with pytest.raises(Refusal, match=r"several sessions that begin with 'ab'; tfmemtop ls .*: tfmemtop attach abc12"):
        choose(found, "ab")
    with pytest.raises(Refusal, match=r"no session is called 'x'; tfmemtop ls .*: tfmemtop attach ccc56"):
        choose([*found, session("ccc56", "python", "train.py")], "x")  # the one that still runs
    with pytest.raises(Refusal, match="no session is running"):
        choose([], None)


def test_the_summary_tells_how_it_went() -> None:
    events: list[ev.Event] = [
        *(s.device(), s.run(1.0, pid=10), s.process(1.0, 10), s.process(1.0, 11, command="worker"), s.hook(1.0, 10)),
        s.process(1.0, 99, run=None, command="other"),
        s.device_reading(2.0, {10: GIB, 11: GIB, 99: 9 * GIB}),
        s.device_reading(3.0, {10: GIB, 99: 99 * GIB}),
        s.allocator(2.0, 10, 100 * MIB, 300 * MIB),
        s.allocator(3.0, 10, 200 * MIB, 300 * MIB),
        ev.OutOfMemory(t=4, pid=10, message="no room"),
        ev.HookEnd(t=5, pid=10, reason=ev.HookEnding.EXIT, dropped=3),
        ev.RunEnd(t=64, run=1, exit_code=1, signal=None),
        ev.Notice(t=99, key="late", level=ev.Level.INFO, kind=None),
    ]
    figures, found = summarise(events, 4)[:5], summarise(events, 4)[5:]
    assert figures == [
        "00:01:03, ended with exit code 1",
        "GPU:0: peak in use 300.0 MiB",
        "GPU 0 NVIDIA H200: peak process total 2.0 GiB",
        "1 out-of-memory error",
        "4 readings, 3 dropped",
    ]
    assert found[0].startswith("Out of memory")


def test_a_recording_cut_short_has_no_end_to_tell() -> None:
    lines = summarise([s.run(1.0, pid=10), s.hook(1.0, 10), s.allocator(9.0, 10, 1, 1)], 1)
    assert lines[:2] == ["00:00:08, how it ended is unknown", "GPU:0: peak in use 1 B"]


# Reports on a long session are made from an outline of it. They are the same as those from all of its events.


LONG_S = 700
"""Seconds. Here reports on sessions of ten minutes are made from an outline, otherwise of those of an hour."""


@pytest.mark.long
def test_an_outline_explains_and_compares_as_the_whole_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_LONG_S", "_WHOLE_S"):
        monkeypatch.setattr(cli_sessions, name, getattr(cli_sessions, name) / 6)
    path = tmp_path / "run.jsonl.gz"
    write(path, LONG_S)
    recording, whole = read(path), review(the_day(LONG_S))
    outline = list(report_events(recording))
    assert len(outline) < len(list(recording.events())) / 4
    assert page(review(outline, None, spacing_s(recording)), "run") == page(whole, "run")
    short = fold_recording(str(path))
    complete, few = (figures(each.runs[-1], each.now) for each in (whole.state, short))
    assert replace(few, past=complete.past) == complete
