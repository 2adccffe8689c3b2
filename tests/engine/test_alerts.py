"""The user's own commands for a run's end and for out-of-memory, run by the real engine."""

import asyncio
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from unittest.mock import Mock

import pytest

from tests.engine.test_hooks import READING, SPEAK, saying
from tests.patience import PATIENCE_S
from tests.starting import tfmemtop
from tfmemtop.engine.process import alerts
from tfmemtop.engine.process.alerts import Alerts
from tfmemtop.engine.process.launch import Launch
from tfmemtop.engine.stream import Stream
from tfmemtop.events import RunEnd

pytestmark = pytest.mark.programs


def told(path: Path) -> dict[str, str]:
    return dict(line.removeprefix("TFMEMTOP_").split("=", 1) for line in path.read_text().splitlines())


def record(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return tfmemtop("record", "-o", str(tmp_path / "run.jsonl"), *arguments, cwd=tmp_path)


def test_a_command_is_run_at_the_end_with_the_facts(tmp_path: Path) -> None:
    done = record(
        tmp_path, "--on-end", "env | grep ^TFMEMTOP_ >facts; echo out; echo err >&2", "--", "sh", "-c", "exit 3"
    )
    assert done.returncode == 3 and done.stdout == "" and "err\n" not in done.stderr
    facts = told(tmp_path / "facts")
    assert (facts["EVENT"], facts["EXIT_CODE"], facts["RUN"]) == ("end", "3", "1") and facts["SECONDS"].isdigit()
    assert facts["COMMAND"] == "sh -c 'exit 3'" and facts["RECORDING"] == str(tmp_path / "run.jsonl")
    assert not {"SIGNAL", "PEAK_BYTES", "OUTPUT"} & facts.keys()


def test_a_signal_is_told_by_its_name(tmp_path: Path) -> None:
    record(tmp_path, "--on-end", "env | grep ^TFMEMTOP_ >facts", "--", "sh", "-c", "kill -TERM $$")
    facts = told(tmp_path / "facts")
    assert facts["SIGNAL"] == "SIGTERM" and "EXIT_CODE" not in facts


@pytest.mark.parametrize(("line", "code"), [("kill -9 $$", 137), ("no-such-command", 127)])
def test_a_command_that_fails_costs_one_line_and_not_the_exit_code(tmp_path: Path, line: str, code: int) -> None:
    done = record(tmp_path, "--on-end", line, "--", "true")
    assert done.returncode == 0
    assert f"tfmemtop: the command {line!r} has ended with exit code {code}" in done.stderr.splitlines()


OUT_OF_MEMORY = (
    "OOM when allocating tensor with shape[16777216] and type float on /job:localhost/replica:0/task:0/device:CPU:0 "
    "by allocator bfc_cpu_allocator_for_gpu [Op:Fill]"
)


async def test_a_file_system_that_does_not_answer_holds_up_no_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recordings, started, runs = threading.Event(), tmp_path / "started", Mock()
    ended: list[asyncio.Future[int]] = []

    def adopt(pid: int) -> "asyncio.Future[int]":
        ended.append(asyncio.get_running_loop().run_in_executor(None, lambda: os.waitpid(pid, 0)[1]))
        return ended[0]

    runs.adopt = adopt
    monkeypatch.setattr(alerts, "WAIT_S", 0.1)
    monkeypatch.setattr(alerts, "kept_recordings", lambda: recordings.wait(PATIENCE_S) and {})
    stream = Stream()
    ours = Alerts(stream, Launch(argv=["true"], cwd=str(tmp_path), environment={}, on_end=f"env >{started}"), runs)
    ours.on_event(RunEnd(t=1.0, run=1, exit_code=3, signal=None, oom_killed=False))
    await ours.started()
    await asyncio.gather(*ended)
    assert "TFMEMTOP_EXIT_CODE=3" in started.read_text().splitlines()
    recordings.set()


def test_out_of_memory_is_told_once_with_what_was_asked_for(tmp_path: Path) -> None:
    """The script sends what the hook sends: its pool twice, and twice that an allocation failed."""
    reading = saying(**READING | {"device": "CPU:0", "in_use": 8 << 20, "peak": 8 << 20, "pool": 16 << 20})
    failed = saying(type="out_of_memory", message=OUT_OF_MEMORY)
    more = ["--on-oom", "env | grep ^TFMEMTOP_ >>facts", "--on-end", "env | grep ^TFMEMTOP_ >end"]
    assert record(tmp_path, *more, "--", sys.executable, "-c", SPEAK + reading + 2 * failed + reading).returncode == 0
    assert (tmp_path / "facts").read_text().count("TFMEMTOP_EVENT=oom") == 1
    facts, end = told(tmp_path / "facts"), told(tmp_path / "end")
    assert facts["REQUESTED_BYTES"] == str(64 << 20) and facts["OOM_COUNT"] == "1" and "CPU" in facts["DEVICE"]
    assert (end["OOM_COUNT"], end["PEAK_BYTES"], end["POOL_BYTES"]) == ("2", str(8 << 20), str(16 << 20))
    verdict = json.loads(tfmemtop("why", "--json", str(tmp_path / "run.jsonl")).stdout)["verdict"]
    assert (end["CAUSE"], end["VERDICT"]) == (verdict["cause"], verdict["text"])
