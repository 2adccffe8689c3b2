"""The user's own commands for a run's end and for out-of-memory, run by the real engine."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE_S
from tfmemtop.events import Allocator, Hook
from tfmemtop.events.recording import read

pytestmark = pytest.mark.programs

TFMEMTOP = str(Path(sys.executable).with_name("tfmemtop"))


def told(path: Path) -> dict[str, str]:
    return dict(line.removeprefix("TFMEMTOP_").split("=", 1) for line in path.read_text().splitlines())


def record(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [TFMEMTOP, "record", "-o", str(tmp_path / "run.jsonl"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False, cwd=tmp_path)


def why(recording: Path) -> Any:
    command = [TFMEMTOP, "why", "--json", str(recording)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def test_a_command_is_run_at_the_end_with_the_facts(tmp_path: Path) -> None:
    done = record(
        tmp_path, "--on-end", "env | grep ^TFMEMTOP_ >facts; echo out; echo err >&2", "--", "sh", "-c", "exit 3"
    )
    assert done.returncode == 3 and done.stdout == "" and "err\n" not in done.stderr
    facts = told(tmp_path / "facts")
    assert (facts["EVENT"], facts["EXIT_CODE"], facts["RUN"], facts["SECONDS"]) == ("end", "3", "1", "0")
    assert facts["COMMAND"] == "sh -c 'exit 3'" and facts["RECORDING"] == str(tmp_path / "run.jsonl")
    assert not {"SIGNAL", "PEAK_BYTES", "OUTPUT"} & facts.keys()


def test_a_signal_is_told_by_its_name(tmp_path: Path) -> None:
    record(tmp_path, "--on-end", "env | grep ^TFMEMTOP_ >facts", "--", "sh", "-c", "kill -TERM $$")
    facts = told(tmp_path / "facts")
    assert facts["SIGNAL"] == "SIGTERM" and "EXIT_CODE" not in facts


@pytest.mark.parametrize(("line", "code"), [("exit 5", 5), ("kill -9 $$", 137), ("no-such-command", 127)])
def test_a_command_that_fails_costs_one_line_and_not_the_exit_code(tmp_path: Path, line: str, code: int) -> None:
    done = record(tmp_path, "--on-end", line, "--", "true")
    assert done.returncode == 0
    assert f"tfmemtop: the command {line!r} has ended with exit code {code}" in done.stderr.splitlines()


@pytest.mark.tensorflow
def test_tensorflow_is_recorded_and_out_of_memory_told_once_with_what_was_asked_for(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("""
import tensorflow as tf
kept = tf.ones((8 << 20) // 4)
for _ in range(2):
    try:
        tf.ones((64 << 20) // 4)
    except tf.errors.ResourceExhaustedError:
        pass
""")
    more = ["--on-oom", "env | grep ^TFMEMTOP_ >>facts", "--on-end", "env | grep ^TFMEMTOP_ >end", "--cpu-pool", "32M"]
    assert record(tmp_path, *more, "--", sys.executable, "train.py").returncode == 0
    assert (tmp_path / "facts").read_text().count("TFMEMTOP_EVENT=oom") == 1
    facts, end = told(tmp_path / "facts"), told(tmp_path / "end")
    assert facts["REQUESTED_BYTES"] == str(64 << 20) and facts["OOM_COUNT"] == "1" and "CPU" in facts["DEVICE"]
    assert end["OOM_COUNT"] == "2" and int(end["PEAK_BYTES"]) >= 8 << 20 and int(end["POOL_BYTES"]) <= 32 << 20
    verdict = why(tmp_path / "run.jsonl")["verdict"]
    assert (end["CAUSE"], end["VERDICT"]) == (verdict["cause"], verdict["text"])
    events = list(read(tmp_path / "run.jsonl").events())
    assert [event for event in events if isinstance(event, Hook)][-1].executable == sys.executable
    assert max(event.in_use or 0 for event in events if isinstance(event, Allocator)) >= 8 << 20
