"""Sessions that have ended: ``tfmemtop ls`` lists them, and a session's name can be used in place of its recording."""

import fcntl
import json
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests import streams as s
from tests.commands import printed_by, refused_by
from tests.patience import until
from tests.starting import PROGRAM, tfmemtop
from tfmemtop import events as ev
from tfmemtop.cli.arguments import RunArguments
from tfmemtop.cli.launch import make_launch
from tfmemtop.cli.main import main
from tfmemtop.cli.parser import parse
from tfmemtop.cli.why import main as in_notebook
from tfmemtop.engine.stream.kept_sessions import kept_recordings, place_for
from tfmemtop.events.recording import read

GIB = 2**30


def keep(
    name: str, *events: ev.Event, started: float = 1.7e9, path: Path | None = None, command: Sequence[str] = ()
) -> Path:
    """Write the recording of a session to the file that a recorder would use. Return the path."""
    session = s.session()
    fields = {field: getattr(session, field) for field in session.__struct_fields__} | {"id": name, "started": started}
    if command:
        fields["command"] = [*command]
    return s.written(path or place_for(name), [ev.Session(**fields), *events])


def story(peak: int, *, exit_code: int | None = 0, number: int = 1) -> list[ev.Event]:
    """Return the events of a run with a peak of *peak* bytes. With the exit code ``None`` it has no end."""
    told: list[ev.Event] = [
        s.run(0.5, number=number), s.process(0.6, 100), s.device(), s.hook(0.7, 100), s.effective(0.8, 100),
        s.allocator(5.0, 100, peak // 2, peak), s.allocator(6.0, 100, 9 * GIB, name="HOST:0"),
    ]  # fmt: skip
    return told if exit_code is None else [*told, ev.RunEnd(t=61.5, run=number, exit_code=exit_code, signal=None)]


def listed(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, str]:
    """Return the lines of the list, by session. It can have sessions of other tests that run at the same time."""
    return {line.split()[0]: line for line in printed_by(capsys, "ls", *options).splitlines()}


@pytest.mark.usefixtures("home")
def test_the_list_tells_how_each_went(capsys: pytest.CaptureFixture[str]) -> None:
    left_open = s.device_reading(4000.0, {})  # the screen was left open for an hour after the run
    keep("aaaaa", *story(3 * GIB), left_open, started=1.7e9)
    keep("bbbbb", *story(2 * GIB, exit_code=1), *story(GIB, exit_code=137, number=2), started=1.8e9)
    keep("ccccc", *story(GIB, exit_code=None), started=1.75e9)
    (place_for("empty")).touch()
    found = listed(capsys, "--all")
    assert [name for name in found if name in ("aaaaa", "bbbbb", "ccccc", "empty")] == ["bbbbb", "ccccc", "aaaaa"]
    for name, words in {
        "aaaaa": ("00:01:01", "3.0 GiB", "train.py", "ended with exit code 0"),
        "bbbbb": ("2.0 GiB", "exit code 137 (SIGKILL); 2 runs"),
        "ccccc": ("1.0 GiB", "how it ended is unknown"),
    }.items():
        for word in words:
            assert word in found[name], (name, word)

    told = {each["name"]: each for each in json.loads(printed_by(capsys, "ls", "--all", "--json"))}
    path = place_for("aaaaa")
    assert told["aaaaa"] == {
        "name": "aaaaa",
        "command": ["python", "train.py"],
        "started": 1.7e9,
        "duration_s": 61.5,
        "running": False,
        "notebook": None,
        "runs": 1,
        "run": 1,
        "end": "ended with exit code 0",
        "good": True,
        "peak_in_use": 3 * GIB,
        "recording": str(path),
        "size": path.stat().st_size,
        "placement": None,
    }


@pytest.mark.usefixtures("home")
def test_a_program_on_the_command_line_is_cut_off(capsys: pytest.CaptureFixture[str]) -> None:
    code = "\n".join(f"step_{i} = {i}" for i in range(100))
    keep("ddddd", *story(GIB), command=["python", "-c", code])
    line = listed(capsys, "--all")["ddddd"]
    assert "step_1" in line and "step_99" not in line and line.endswith("ended with exit code 0")


@pytest.mark.usefixtures("home")
def test_only_the_newest_are_listed_unless_all_are_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(25):
        keep(f"s{number:04}", *story(GIB), started=4e9 + number)  # newer than any session of others on this machine
    assert [name for name in listed(capsys) if name.startswith("s0")] == [f"s{n:04}" for n in range(24, 4, -1)]
    assert {f"s{n:04}" for n in range(25)} <= set(listed(capsys, "--all"))


@pytest.mark.usefixtures("home")
def test_without_a_file_the_last_session_is_meant(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("why", "compare", "replay"):
        assert "no session has been recorded yet" in refused_by(capsys, command)
    keep("aaaaa", *story(3 * GIB), started=1.7e9)
    last = keep("bbbbb", *story(GIB, exit_code=1), started=1.8e9)

    def printed(*line: str) -> str:
        return printed_by(capsys, *line)

    assert printed("why") == printed("why", str(last)) == printed("why", "bbb")
    assert "why --long bbbbb:1" in printed("why", "bbbbb:1")
    assert printed("why") != printed("why", "aaaaa")
    assert printed("compare") == printed("compare", "aaaaa", "bbbbb")
    keep("ccccc", *story(GIB), *story(2 * GIB, number=2), started=1.9e9)
    assert {"run 1", "run 2"} <= set(re.findall(r"run \d", printed("compare")))
    keep("bbbbc", *story(GIB))
    assert "2 sessions begin with 'bbb'; tfmemtop ls lists them" in refused_by(capsys, "why", "bbb")


def test_a_file_that_another_session_was_recorded_to_is_not_the_first_ones(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = keep("aaaaa", *story(GIB), path=home / "run.jsonl")
    place_for("aaaaa").symlink_to(file)
    assert "aaaaa" in listed(capsys)
    keep("bbbbb", *story(GIB), path=file)
    place_for("bbbbb").symlink_to(file)
    found = listed(capsys)
    assert "bbbbb" in found and "aaaaa" not in found


@pytest.mark.usefixtures("home")
def test_record_keeps_what_no_file_was_named_for() -> None:
    done = tfmemtop("record", "--", "sh", "-c", "exit 3")
    ((name, path),) = kept_recordings().items()
    assert done.returncode == 3
    assert done.stderr.splitlines()[-1] == f"tfmemtop: recorded in {path}"
    assert read(path).session.id == name
    assert tfmemtop("record", "--", "no-such-command").returncode == 127
    assert list(kept_recordings()) == [name], "what was not started is no session"


@pytest.mark.usefixtures("home")
def test_one_that_goes_on_is_listed_as_running(capsys: pytest.CaptureFixture[str]) -> None:
    going = subprocess.Popen([PROGRAM, "record", "--", "cat"], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    (name,) = until(lambda: listed(capsys).keys() & kept_recordings().keys())
    assert listed(capsys)[name].endswith("running")
    going.communicate()
    assert listed(capsys)[name].endswith("ended with exit code 0")


@pytest.mark.usefixtures("home")
def test_one_word_says_whether_it_is_running_or_its_end_was_not_seen(capsys: pytest.CaptureFixture[str]) -> None:
    def told(*line: str) -> str:
        capsys.readouterr()
        assert (in_notebook([line[-1]]) if line[0] == "%memtop" else main([*line])) == 0
        said = capsys.readouterr().out.splitlines()
        if line[0] == "ls":
            said = [each for each in said if each.startswith("bbbbb")]
        return " ".join(" ".join(said).split())

    keep("aaaaa", *story(GIB))
    path = keep("bbbbb", *story(GIB, exit_code=None))
    lines = (("ls", "--all"), ("why", "bbbbb"), ("%memtop", "bbbbb"), ("compare", "aaaaa", "bbbbb"))
    with path.open("rb") as recorder:
        fcntl.flock(recorder, fcntl.LOCK_EX)  # as a recorder that writes to it
        for line in lines:
            assert "running" in told(*line) and "how it ended is unknown" not in told(*line), line
    for line in lines:
        assert "how it ended is unknown" in told(*line) and "running" not in told(*line), line


def test_no_record_keeps_nothing() -> None:
    for options, kept in (([], True), (["--no-record"], False)):
        arguments = parse([*options, "--", "true"]).arguments
        assert isinstance(arguments, RunArguments)
        assert make_launch(arguments, ["true"], arguments.settings).keep is kept
