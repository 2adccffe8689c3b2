"""A compressed recording is one gzip file. Other programs can read it. It is complete up to the last flush.

Reading can begin at any moment of the recording.
"""

import gzip
import json
import os
import random
import re
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import streams as s
from tests.commands import printed_by, refused_by
from tests.recording.test_recording import SESSION, kept
from tests.starting import ran
from tfmemtop import events as ev
from tfmemtop import help
from tfmemtop.cli.main import main
from tfmemtop.engine.stream.backlog import Backlog
from tfmemtop.events import decode_event
from tfmemtop.events.recording import RecordingError, Writer, read
from tfmemtop.events.recording import writer as writing
from tfmemtop.events.recording.chunks import chunks
from tfmemtop.settings import Settings
from tfmemtop.state import State, apply

ROOT = Path(__file__).parents[2]
REAL = ROOT / "tests" / "recordings" / "h200-runs.jsonl"


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "CHUNK", 100_000)
    monkeypatch.setattr(writing, "_SHARE", 2)


def write(path: Path, events: list[ev.Event]) -> None:
    """Write *events* as a recorder does, which flushes once a second."""
    backlog, flushed = Backlog(), 0.0
    writer = Writer(path)
    for event in events:
        backlog.add(event)
        writer.write(event)
        if event.t - flushed > writer.flush_s:
            flushed = event.t
            writer.flush()
        if writer.full:
            writer.begin_chunk(backlog.events())
    writer.close()


def real(path: Path = REAL) -> list[ev.Event]:
    return list(read(path).events())


def starts(path: Path) -> list[float]:
    with path.open("rb") as file:
        return [chunk.t for chunk in chunks(file)]


def test_what_is_packed_is_a_tenth_as_large_and_its_users_alone(tmp_path: Path) -> None:
    packed = tmp_path / "run.jsonl.gz"
    assert main(["convert", str(REAL), str(packed)]) == 0
    assert packed.stat().st_size < REAL.stat().st_size / 10
    assert packed.stat().st_mode & 0o777 == 0o600
    assert read(packed).duration() == read(REAL).duration()


@pytest.mark.programs
@pytest.mark.usefixtures("small_chunks")
def test_anybody_can_read_it_as_the_manual_says(tmp_path: Path) -> None:
    path, cut = tmp_path / "run.jsonl.gz", tmp_path / "cut.jsonl.gz"
    write(path, real())
    cut.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    plain = [json.loads(line) for line in REAL.read_text().splitlines()]
    without_repeats = [line for line in lines if line["type"] not in ("so_far", "outline")]
    assert [line["t"] for line in without_repeats] == [line["t"] for line in plain]
    assert sum(line["type"] == "so_far" for line in lines) == len(starts(path)) - 1 > 2

    (program,) = re.findall(r"```python\n(.*?)```", help.topic("formats"), re.DOTALL)
    for file, events in ((path, real()), (cut, real(cut))):
        told = ran([sys.executable, "-c", program, file], check=True).stdout
        most = max(e.in_use or 0 for e in events if isinstance(e, ev.Allocator) and e.device == "GPU:0")
        assert f"'GPU:0': {most}" in told


@pytest.mark.usefixtures("small_chunks")
def test_reading_can_begin_at_any_chunk_with_what_a_late_reader_knows(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl.gz"
    events = real()
    pid = next(event.pid for event in events if isinstance(event, ev.Allocator))
    noise = random.Random(1)
    for part, at in enumerate((300, 900, 1500)):
        trace = ev.Trace(
            t=events[at].t + 5e-7, pid=pid, device="GPU:0", part=part, last=part == 2, whole=True, events=9,
            packed=noise.randbytes(5000),
        )  # fmt: skip
        events.insert(at + 1, trace)
    write(path, events)
    lines = gzip.decompress(path.read_bytes()).splitlines()
    assert sum(line.count(b'"type":"trace"') for line in lines if line.startswith(b'{"type":"so_far"')) == 0
    recording = read(path)
    assert [*recording.events()] == events
    backlog, state, told = Backlog(), s.fold(events), 0
    for t in starts(path)[1:]:
        start = recording.start_before(t + 0.001)
        assert start is not None and start.t == t
        while events[told].t <= t:
            backlog.add(events[told])
            told += 1
        late = State()
        assert start.so_far == [event.recorded() for event in backlog.events()]
        rest = list(recording.events(start.place))
        assert rest == events[told:]
        for event in [*start.so_far, *rest]:
            apply(late, event)
        assert late.runs[-1].peaks == state.runs[-1].peaks
        assert late.devices[0].reading == state.devices[0].reading
        traces = [event for event in start.so_far if isinstance(event, ev.Trace)]
    assert len(traces) == 3, "what is told once is found"
    assert recording.start_before(starts(path)[1] - 0.001) is None


def in_use(reading: ev.Allocator) -> int:
    return reading.in_use or 0


def highest(reading: ev.Allocator) -> int:
    return max(reading.in_use or 0, reading.high or 0)


@pytest.mark.usefixtures("small_chunks")
def test_an_outline_has_fewer_readings_and_all_that_happened(tmp_path: Path) -> None:
    path, plain = tmp_path / "run.jsonl.gz", tmp_path / "run.jsonl"
    events = [event for event in real() if not isinstance(event, ev.Output)]
    failure = ev.OutOfMemory(t=events[1000].t, pid=7, message="no")
    events.insert(1001, failure)
    write(path, events)
    write(plain, events)
    for recording in (read(path), read(plain)):
        short = list(recording.outline(60.0, 70.0))
        assert [event.t for event in short] == sorted(event.t for event in short)
        assert len(short) < len(events) / 3
        assert [e for e in short if not e.droppable] == [e for e in events if not e.droppable]
        assert [e for e in short if 60 <= e.t <= 70] == [e for e in events if 60 <= e.t <= 70]
        for device in ("GPU:0", "HOST:0"):
            whole, few = (
                [e for e in found if isinstance(e, ev.Allocator) and e.device == device] for found in (events, short)
            )
            for end in range(10, 150, 10):
                a, b = ([e for e in found if end - 10 <= e.t < end] for found in (whole, few))
                assert min(map(in_use, a), default=0) == min(map(in_use, b), default=0)
                assert max(map(highest, a), default=0) == max(map(highest, b), default=0)
            before = [e for e in whole if e.t < failure.t][-1]
            assert before in few, "what a failure is judged by"
    assert len(list(read(path).outline(0, 1e9))) == len(events)
    assert len(starts(path)) > 3


_texts = st.lists(st.text(max_size=40), max_size=12)


@given(_texts, st.floats(0, 1))
def test_cut_anywhere_it_has_what_was_flushed_before(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], where: float
) -> None:
    path = tmp_path_factory.mktemp("cut") / "run.gz"
    writer, flushed = Writer(path), [0]
    events: list[ev.Event] = [SESSION, *(ev.Output(t=n, run=1, text=text) for n, text in enumerate(texts, 1))]
    for event in events:
        writer.write(event)
        writer.flush()
        flushed.append(path.stat().st_size)
    writer.close()
    whole = path.read_bytes()
    size = max(flushed[1], int(where * len(whole)))
    path.write_bytes(whole[:size])
    found, recording = kept(path)
    assert found == events[: len(found)]
    assert len(found) >= sum(end <= size for end in flushed[1:])
    assert recording.damaged == 0


def test_chunks_stay_as_small_whatever_is_written(tmp_path: Path) -> None:
    path = tmp_path / "kept.jsonl.gz"
    errors = [ev.HookError(t=number / 100, pid=7, text="x" * 20_000) for number in range(2_000)]
    write(path, [SESSION, *errors])
    assert len(starts(path)) >= 4  # 40 MB of text; the chunks would each be four times as large as the one before
    assert list(read(path).events())[1:] == errors


@pytest.mark.usefixtures("small_chunks")
def test_damage_costs_no_more_than_its_chunk(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl.gz"
    write(path, real())
    with path.open("rb") as file:
        _, hit, after, *_ = chunks(file)
    data = bytearray(path.read_bytes())
    data[hit.offset + 2000 : hit.offset + 2100] = bytes(100)
    path.write_bytes(data)
    found, recording = kept(path)
    assert recording.damaged >= 1
    assert [event for event in real() if event.t <= hit.t or event.t > after.t] == [
        event for event in found if event.t <= hit.t or event.t > after.t
    ]
    assert recording.duration() == read(REAL).duration()


def test_a_foreign_gzip_file_is_left_alone_and_one_of_json_lines_is_read(tmp_path: Path) -> None:
    foreign, ours = tmp_path / "thesis.gz", tmp_path / "old.jsonl.gz"
    foreign.write_bytes(gzip.compress(b"years of work"))
    ours.write_bytes(gzip.compress(REAL.read_bytes()))
    for use in (read, Writer):
        with pytest.raises(RecordingError) as refused:
            use(foreign)
        assert "is no tfmemtop recording" in str(refused.value)
    assert gzip.decompress(foreign.read_bytes()) == b"years of work"
    assert real(ours) == real()
    assert read(ours).duration() == read(REAL).duration()


@pytest.mark.usefixtures("small_chunks")
def test_what_is_repeated_holds_no_secrets_either(tmp_path: Path) -> None:
    path = tmp_path / "run.gz"
    settings = Settings(environment={"WANDB_API_KEY": "s3cret", "XLA_FLAGS": "y"})
    run = ev.Run(t=0.1, run=1, pid=1, argv=["python"], cwd="/", settings=settings)
    write(path, [SESSION, run, *(s.allocator(n, 1, n) for n in range(1, 5000))])
    text = gzip.decompress(path.read_bytes())
    assert text.count(b"XLA_FLAGS") > len(starts(path)) > 2
    assert b"s3cret" not in text


@pytest.mark.programs
def test_a_text_that_expands_without_end_takes_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "run.gz"
    bomb = gzip.compress(ev.encode(SESSION) + b"\n" + bytes(100 << 20))
    path.write_bytes(bomb)
    program = """
import resource, sys
from tfmemtop.events.recording import read
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
recording = read(sys.argv[1])
print(sum(1 for _ in recording.events()), (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""
    done = ran([sys.executable, "-c", program, path], check=True)
    count, mib = map(int, done.stdout.split())
    assert count == 1
    assert mib < 80


def test_a_file_is_not_converted_into_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(REAL.read_bytes())
    link = tmp_path / "link.jsonl"
    os.link(path, link)
    assert "name another file" in refused_by(capsys, "convert", str(path), str(link))
    assert path.read_bytes() == REAL.read_bytes()


RECORDINGS = Path(__file__).parents[1] / "recordings"


@pytest.mark.parametrize("name", ["cpu-oom", "h100-frameworks", "leaks/h200-tape", "windows/xla", "settings/worker"])
def test_events_survive_compression(tmp_path: Path, name: str) -> None:
    path = RECORDINGS / f"{name}.jsonl"
    packed, plain, again = (tmp_path / name for name in ("run.jsonl.gz", "run.jsonl", "again.jsonl"))
    assert main(["convert", str(path), str(packed)]) == 0
    assert main(["convert", str(packed), str(plain)]) == 0
    assert list(read(packed).events()) == list(read(plain).events()) == list(read(path).events())
    assert read(packed).damaged == read(plain).damaged == read(path).damaged == 0
    # Lines of *path* may lack fields that have been added since. Lines of this tfmemtop do not change.
    assert main(["convert", str(plain), str(again)]) == 0
    assert again.read_bytes() == plain.read_bytes()


def test_what_is_left_out_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "newer.jsonl", tmp_path / "out.jsonl"
    path.write_bytes((RECORDINGS / "cpu-plain.jsonl").read_bytes() + b'{"type":"weather","t":9.0}\n{"type":\n[\n')
    assert main(["convert", str(path), str(out)]) == 0
    assert capsys.readouterr().err.endswith("2 damaged lines and 1 unknown line left out\n")
    assert list(read(out).events()) == list(read(path).events())


def test_the_name_of_stdout_prints_lines_for_other_programs(capsys: pytest.CaptureFixture[str]) -> None:
    path = RECORDINGS / "cpu-plain.jsonl"
    told = printed_by(capsys, "convert", str(path), "-")
    assert told.isascii()
    lines = told.splitlines()
    assert [decode_event(line.encode()) for line in lines] == list(read(path).events())
