"""Events that were written to a recording are read back, whatever happens to the writer or the file."""

import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import streams as s
from tests.limited import limited
from tests.starting import ran
from tfmemtop import events as ev
from tfmemtop.events.recording import Recording, RecordingError, Writer, read
from tfmemtop.settings import Settings

SESSION = s.session()

_t = st.floats(0, 1e6)
_bytes = st.none() | st.integers(0, 1 << 50)
_text = st.text(max_size=20)
_event = st.one_of(
    st.builds(ev.Output, t=_t, run=st.just(1), text=_text),
    st.builds(
        ev.Allocator,
        t=_t,
        pid=st.just(7),
        device=st.just("GPU:0"),
        allocator=st.none() | _text,
        in_use=_bytes,
        peak=_bytes,
        pool=_bytes,
        limit=_bytes,
    ),
    st.builds(
        ev.ProcessReadings, t=_t, processes=st.lists(st.builds(ev.ProcessReading, st.just(7), st.none(), _bytes))
    ),
    st.builds(ev.RunEnd, t=_t, run=st.just(1), exit_code=st.none() | st.integers(0, 255), signal=st.none()),
)
_events = st.lists(_event, max_size=12)


def write(path: Path, events: list[ev.Event]) -> list[ev.Event]:
    stream = [SESSION, *events]
    s.written(path, stream)
    return stream


def kept(path: Path) -> tuple[list[ev.Event], Recording]:
    recording = read(path)
    return list(recording.events()), recording


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("recordings") / "run.jsonl"


@given(_events)
def test_what_is_written_is_read_back(path: Path, events: list[ev.Event]) -> None:
    written = write(path, events)
    found, recording = kept(path)
    assert found == written
    assert (recording.damaged, recording.unknown) == (0, 0)
    assert recording.duration() == written[-1].t


@given(_events, st.floats(0, 1))
def test_a_cut_anywhere_loses_the_last_line_at_most(path: Path, events: list[ev.Event], where: float) -> None:
    written = write(path, events)
    data = path.read_bytes()
    first = data.index(b"\n")
    cut = data[: first + int(where * (len(data) - first))]
    path.write_bytes(cut)
    found, recording = kept(path)
    assert found == written[: len(found)]
    assert len(found) >= max(1, cut.count(b"\n"))
    assert recording.damaged == 0, "a line that is still being written is no damage"


@given(_events, st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), max_size=8))
def test_damage_costs_no_line_but_the_damaged(
    path: Path, events: list[ev.Event], hits: list[tuple[float, int]]
) -> None:
    written = write(path, events)
    whole = path.read_bytes()
    data, after_session = bytearray(whole), whole.index(b"\n") + 1
    touched = set()
    for where, value in hits if len(data) > after_session else []:
        place = after_session + int(where * (len(data) - after_session))
        line = whole.count(b"\n", 0, place)
        touched |= {line, line + 1} if whole[place] == ord("\n") else {line}
        data[place] = value
    path.write_bytes(data)
    found, recording = kept(path)
    for number, event in enumerate(written):
        assert number in touched or event in found
    assert recording.damaged + recording.unknown <= 2 * len(hits)


def test_lines_of_a_later_version_of_the_format_are_counted_apart(path: Path) -> None:
    write(path, [])
    with path.open("ab") as file:
        file.write(
            b'{"type":"weather","t":1.0,"sun":true}\n{"type":"run_end","t":1.0}\n[[[[\n\n' + b"[" * 100_000 + b"\n"
        )
    found, recording = kept(path)
    assert found == [SESSION]
    assert (recording.unknown, recording.damaged) == (1, 3)


@pytest.mark.parametrize("number", [ev.FORMAT - 1, ev.FORMAT + 1])
def test_another_format_is_refused_even_if_its_session_looks_otherwise(path: Path, number: int) -> None:
    path.write_text(f'{{"type":"session","format":{number},"who":"?"}}\n')
    with pytest.raises(RecordingError) as caught:
        read(path)
    assert f"has format {number}" in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"hello\n", b'{"format":1}\n', b"\x00\xff\n", b'{"type":"run","t":0}\n'])
def test_a_foreign_file_is_refused_in_one_line(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(RecordingError) as caught:
        read(path)
    said = str(caught.value)
    assert "is no tfmemtop recording" in said and "\n" not in said


def test_what_is_no_file_is_refused_without_waiting(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for odd in (pipe, tmp_path, tmp_path / "missing", Path("/dev/zero")):
        with pytest.raises(RecordingError):
            read(odd)
    for odd in (pipe, tmp_path, tmp_path / "missing" / "run.jsonl"):
        with pytest.raises(RecordingError) as refused:
            Writer(odd)
        assert str(refused.value).startswith(f"cannot record to {odd}: ")


def test_a_foreign_file_is_left_alone_and_a_recording_is_replaced_once_something_is_written(tmp_path: Path) -> None:
    old, thesis = tmp_path / "old.jsonl", tmp_path / "thesis.txt"
    write(old, [ev.Output(t=1, run=1, text="old")])
    thesis.write_text("years of work")
    for each in (old, thesis):
        each.chmod(0o664)
    with pytest.raises(RecordingError) as refused:
        Writer(thesis)
    assert "no tfmemtop recording; it was left alone" in str(refused.value)
    assert thesis.read_text() == "years of work" and thesis.stat().st_mode & 0o777 == 0o664
    before = old.read_bytes()
    Writer(old).close()
    assert old.read_bytes() == before and old.stat().st_mode & 0o777 == 0o664, "the run may fail to start"
    new = write(old, [])
    assert kept(old)[0] == new and old.stat().st_mode & 0o777 == 0o600


def test_two_writers_do_not_share_a_file(tmp_path: Path) -> None:
    first = Writer(tmp_path / "run.jsonl")
    with pytest.raises(RecordingError) as refused:
        Writer(tmp_path / "run.jsonl")
    assert "another tfmemtop is recording there" in str(refused.value)
    first.close()
    Writer(tmp_path / "run.jsonl").close()


PLAIN_AND_PACKED = pytest.mark.parametrize("name", ["run.jsonl", "run.tfm"])


@PLAIN_AND_PACKED
def test_a_recording_can_be_read_while_it_is_written(tmp_path: Path, name: str) -> None:
    writer = Writer(tmp_path / name)
    writer.write(SESSION)
    writer.flush()
    recording = read(writer.path)
    stream = recording.events()
    assert next(stream) == SESSION
    news = ev.Output(t=2, run=1, text="news")
    writer.write(news)
    writer.flush()
    found, recording = kept(writer.path)
    assert (found, recording.damaged) == ([SESSION, news], 0)
    writer.close()


@pytest.mark.programs
@PLAIN_AND_PACKED
def test_a_killed_writer_leaves_everything_it_flushed(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    program = """
import os, signal, sys
from tests.recording.test_recording import SESSION, Writer, ev
writer = Writer(sys.argv[1])
writer.write(SESSION)
for n in range(1000):
    writer.write(ev.Output(t=n, run=1, text="x" * 50))
writer.flush()
writer.write(ev.Output(t=1000, run=1, text="never flushed"))
os.kill(os.getpid(), signal.SIGKILL)
"""
    killed = subprocess.run([sys.executable, "-c", program, path], cwd=Path(__file__).parents[2], check=False)
    assert killed.returncode == -signal.SIGKILL
    found, recording = kept(path)
    assert [event.t for event in found] == [0, *range(1000)]
    assert (recording.damaged, recording.duration()) == (0, 999)


def test_a_full_disk_ends_the_recording_at_a_whole_line(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    writer = Writer(path)
    writer.write(SESSION)
    writer.flush()
    with limited(resource.RLIMIT_FSIZE, path.stat().st_size + 100):
        for n in range(5):
            writer.write(ev.Output(t=n, run=1, text="about 60 bytes in all"))
        with pytest.raises(RecordingError) as stopped:
            writer.flush()
    assert str(stopped.value) == f"recording to {path} has stopped: File too large"
    assert writer.closed
    writer.write(ev.Output(t=9, run=1, text="let go"))
    writer.close()
    assert path.read_bytes().endswith(b"}\n")
    assert len(kept(path)[0]) == 2


SECRET = ["TF_HUB_TOKEN", "XLA_api_key", "TFMEMTOP_SECRET_WORD", "NCCL_Password", "CUDA_PASSWD", "TF_CREDENTIALS"]
SECRET += ["WANDB_API_KEY", "AWS_SECRET_ACCESS_KEY", "HOME"]


@pytest.mark.parametrize("name", SECRET)
def test_only_variables_that_affect_memory_and_speak_of_no_secret_are_recorded(tmp_path: Path, name: str) -> None:
    variables = {name: "s3cret", "TF_CPP_MIN_LOG_LEVEL": "1", "XLA_FLAGS": "y"}
    path = tmp_path / "run.jsonl"
    write(
        path,
        [
            ev.Environment(t=1, pid=1, variables=variables),
            ev.Run(t=2, run=1, pid=1, argv=["python"], cwd="/", settings=Settings(environment=variables)),
            ev.Initialised(t=3, pid=1, file="a.py", line=1, variables=variables),
        ],
    )
    assert "s3cret" not in path.read_text() and name not in path.read_text()
    _, environment, run, made = kept(path)[0]
    assert isinstance(environment, ev.Environment) and isinstance(run, ev.Run) and isinstance(made, ev.Initialised)
    del variables[name]
    assert environment.variables == run.settings.environment == made.variables == variables


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_a_recording_is_its_users_alone(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        write(tmp_path / "run.jsonl", [])
    finally:
        os.umask(before)
    assert (tmp_path / "run.jsonl").stat().st_mode & 0o777 == 0o600


GOOD = '{"type":"allocator","t":1,"pid":7,"device":"GPU:0","allocator":"bfc","in_use":1,"peak":1,"pool":1,"limit":null}'
HOSTILE = {
    "an integer of 310 digits": GOOD.replace('"peak":1', '"peak":1' + "0" * 310),
    "an integer of 30 digits": GOOD.replace('"peak":1', '"peak":1' + "0" * 30),
    "a negative size": GOOD.replace('"peak":1', '"peak":-1'),
    "a time of 1e300": GOOD.replace('"t":1', '"t":1e300'),
    "a time before the beginning": GOOD.replace('"t":1', '"t":-1'),
    "a megabyte of a name": GOOD.replace("GPU:0", "G" * 2**20),
    "nested": "[" * 100_000,
    "nested objects": '{"a":' * 100_000,
    "infinite": GOOD.replace('"t":1', '"t":1e999'),
    "half a character": GOOD.replace("GPU:0", "\\ud800"),
    "fragmented beyond all": '{"type":"memory_map","t":1,"pid":7,"device":"GPU:0","fragmentation":1e308}',
    "a list without end": '{"type":"functions","t":1,"pid":7,"functions":['
    + ",".join(['["f",1,1,"a.py",1]'] * 100_000)
    + "]}",
    "a process of the far future": '{"type":"process","t":1,"pid":7,"ppid":1,"user":"","command":[],'
    '"started":1e300,"run":1}',
    "a terminal as wide as the world": '{"type":"terminal","t":1,"columns":1000000000,"rows":1000000000}',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_out_of_bounds_is_a_damaged_line_and_costs_nothing_that_is_good(tmp_path: Path, name: str) -> None:
    path = tmp_path / "run.jsonl"
    write(path, [])
    with path.open("a") as file:
        file.write("\n".join([GOOD, HOSTILE[name], GOOD]) + "\n")
    events, recording = kept(path)
    assert [event.t for event in events] == [0, 1, 1]
    assert recording.damaged == 1
    assert recording.duration() == 1


def test_a_deeply_nested_unknown_field_harms_nothing(tmp_path: Path) -> None:
    """Python 3.14 can skip the field. Older versions can nest fewer calls, and the line counts as damaged."""
    path = tmp_path / "run.jsonl"
    write(path, [])
    with path.open("a") as file:
        file.write("\n".join([GOOD, GOOD[:-1] + ',"more":' + "[" * 100_000 + "]" * 100_000 + "}", GOOD]) + "\n")
    events, recording = kept(path)
    assert [event.t for event in events] == [0, *[1] * (3 - recording.damaged)]
    assert recording.damaged == (0 if sys.version_info >= (3, 14) else 1)


def test_the_allocator_line_is_as_documented(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    documented = {"pid": 42, "device": "GPU:0", "allocator": "GPU_0_bfc", "in_use": 1024, "peak": 2048, "pool": 4096}
    write(path, [ev.Allocator(t=1.5, limit=None, **documented)])  # type: ignore[arg-type]
    # Keys may be added later; these do not change.
    told = json.loads(path.read_text().splitlines()[1])
    assert ({"type": "allocator", "t": 1.5, "limit": None} | documented).items() <= told.items()


@pytest.mark.programs
def test_reading_a_large_recording_takes_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    write(path, [])
    line = ev.encode(ev.Output(t=1, run=1, text="x" * 4000)) + b"\n"
    with path.open("ab") as file:
        for _ in range(100):
            file.write(line * 100)
        file.write(b"z" * (20 << 20) + b"\n")
        file.write(line)
    program = """
import resource, sys
from tfmemtop.events.recording import read
recording = read(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(sum(1 for _ in recording.events()), recording.damaged, recording.duration())
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024, file=sys.stderr)
"""
    done = ran([sys.executable, "-c", program, path], check=True)
    assert done.stdout.split() == ["10002", "1", "1.0"]
    assert int(done.stderr) < 80, "MiB more than before"
