"""``tfmemtop record``: the script runs as without it, its events are in a file, and a summary is printed at its end."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.own_sessions import own_sessions
from tests.patience import PATIENCE_S, until
from tests.starting import PROGRAM, Start, ended, ran, tfmemtop
from tfmemtop import events as ev
from tfmemtop.events.recording import read

pytestmark = pytest.mark.programs


def record(
    path: Path, *command: str, options: tuple[str, ...] = (), stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    return tfmemtop("record", "-o", str(path), *options, "--", *command, stdin=stdin)


def test_stdin_stdout_and_exit_code_are_the_scripts_own(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    done = record(path, "sh", "-c", "cat; echo to stderr >&2; exit 5", stdin="from stdin\n")
    assert (done.returncode, done.stdout) == (5, "from stdin\n")
    first, *summary = done.stderr.splitlines()
    assert first == "to stderr"
    assert summary[0].endswith("ended with exit code 5")
    assert summary[-1] == f"tfmemtop: recorded in {path}"
    assert all(line.startswith("tfmemtop: ") for line in summary)
    kinds = [event.__struct_config__.tag for event in read(path).events()]
    assert kinds[0] == "session"
    assert kinds.count("run") == kinds.count("run_end") == 1


@pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("setpriv"),
    reason="only root, with setpriv, can be a user without processes",
)
def test_where_too_few_threads_can_be_started_the_script_runs_without_us(tmp_path: Path) -> None:
    """The kernel limits a user's threads, but not those of root. Those of tfmemtop count too."""
    reading = "+dac_override,+dac_read_search"  # of the files of this installation
    user = ["--reuid=54321", "--regid=54321", "--clear-groups", "--inh-caps", reading, "--ambient-caps", reading]
    limited = ["prlimit", "--nproc=10", "setpriv", *user]
    script = ["sh", "-c", "(sleep 0.5; echo in one) | cat | cat | cat | cat | cat | cat; exit 5"]
    done = ran([*limited, PROGRAM, "record", "-o", str(tmp_path / "run.jsonl"), "--", *script])
    assert (done.returncode, done.stdout) == (5, "in one\n")
    # The folders are another user's, which is told before.
    assert "the command runs without tfmemtop" in done.stderr.splitlines()[-1]


def test_with_too_little_memory_the_script_runs_without_us(tmp_path: Path) -> None:
    limited = ["prlimit", f"--as={100 << 20}"]
    command = [*limited, PROGRAM, "record", "-o", str(tmp_path / "run.jsonl"), "--", "sh", "-c", "echo ran; exit 5"]
    done = ran(command)
    assert (done.returncode, done.stdout) == (5, "ran\n")
    (line,) = done.stderr.splitlines()
    assert "the command runs without tfmemtop" in line and "ulimit -v" in line


def test_a_long_tmpdir_is_no_hindrance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / ("long" * 25)
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    done = record(tmp_path / "run.jsonl", "sh", "-c", "echo $TMPDIR")
    assert (done.returncode, done.stdout) == (0, f"{folder}\n"), done.stderr


def test_a_recorder_that_is_killed_leaves_what_happened_up_to_then(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl.gz"
    command = [PROGRAM, "record", "-o", str(path), "--", "sh", "-c", "read line"]

    def kinds() -> set[type]:
        return {type(event) for event in read(path).events()} if path.exists() and path.stat().st_size else set()

    recorder = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    try:
        until(lambda: kinds() >= {ev.Run, ev.ProcessReadings})  # while it is still being written
    finally:
        recorder.kill()
        recorder.communicate()  # this closes the script's input, so the script ends
    recording = read(path)
    found = list(recording.events())
    assert [event.t for event in found] == sorted(event.t for event in found)
    assert kinds() >= {ev.Run, ev.ProcessReadings} and recording.damaged == 0


def test_screens_attach_to_what_is_recorded_and_change_nothing(start: Start, tmp_path: Path) -> None:
    path, script = tmp_path / "run.jsonl", ("sh", "-c", "read line; exit 3")
    recorder = subprocess.Popen([PROGRAM, "record", "-o", str(path), "--", *script], stdin=subprocess.PIPE)
    (session,) = until(own_sessions)
    leaving, staying, stopped = (start("attach", name) for name in (session.id, session.id[:4], str(recorder.pid)))
    for screen in (leaving, staying, stopped):
        screen.expect("READ-ONLY")
        screen.expect("read line")  # in the table of processes, whose readings are live
        screen.expect("the command has a terminal of its own")
    leaving.send("R")
    leaving.expect("This screen is read-only")
    leaving.send("q")
    code, printed = ended(leaving)
    assert code == 0 and f"tfmemtop attach {session.id} brings the screen back" in printed
    assert recorder.poll() is None
    stopped.kill(signal.SIGSTOP)
    recorder.communicate(b"\n", timeout=PATIENCE_S)
    assert recorder.returncode == 3
    staying.expect("exit code 3")
    staying.expect("SESSION OVER")
    (run,) = (event for event in read(path).events() if isinstance(event, ev.Run))
    assert run.argv == list(script)


def test_a_command_that_cannot_be_started_costs_no_recording(tmp_path: Path) -> None:
    path, strange = tmp_path / "run.jsonl", tmp_path / "strange.sh"
    strange.write_text("#!/no/such/interpreter\n")
    strange.chmod(0o755)
    record(path, "true")
    before = path.read_bytes()
    for command, code, said in (
        ("no-such-command", 127, "tfmemtop: no-such-command: command not found\n"),
        ("/etc/passwd", 126, "tfmemtop: /etc/passwd: not executable\n"),
        (str(strange), 127, f"tfmemtop: {strange}: the interpreter named in its first line is not there\n"),
    ):
        done = record(path, command)
        assert (done.returncode, done.stdout, done.stderr) == (code, "", said)
        assert path.read_bytes() == before


def test_a_page_is_written_at_the_end_and_a_failure_of_it_is_one_line(tmp_path: Path) -> None:
    page, nowhere = tmp_path / "run.html", tmp_path / "none" / "run.html"
    done = record(tmp_path / "run.jsonl", "sh", "-c", "exit 5", options=("--report", str(page)))
    assert done.returncode == 5 and done.stderr.splitlines()[-1] == f"tfmemtop: the page is in {page}"
    assert page.stat().st_mode & 0o777 == 0o600 and "ended with exit code 5" in page.read_text()
    done = record(tmp_path / "run2.jsonl", "sh", "-c", "exit 5", options=("--report", str(nowhere)))
    assert done.returncode == 5
    why = f"no page was written: cannot write {nowhere}: No such file or directory"
    assert done.stderr.splitlines()[-1] == f"tfmemtop: {why}"
