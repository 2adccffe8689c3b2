"""A process that was started without tfmemtop, read by the commands ``attach PID`` and ``--once --json``."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.reporting import Reporting
from tests.forked import Forking
from tests.patience import PATIENCE_S
from tests.starting import PROGRAM, Start, ended
from tfmemtop.cli.main import main
from tfmemtop.engine.stream.kept_sessions import kept_recordings


@pytest.fixture(scope="module")
def training(tensorflow_bare: Forking) -> Iterator[Reporting]:
    found = Reporting(512, imported=tensorflow_bare)
    found.do("import")
    found.do("take 300000000")  # the largest are read first
    yield found
    found.close()


@pytest.mark.tensorflow
def test_attach_shows_records_explains_and_leaves_it_as_it_was(start: Start, home: Path, training: Reporting) -> None:
    before = training.do("figures")
    child = start("attach", str(training.pid), size=(140, 40))
    child.expect("FROM OUTSIDE")
    child.expect("read from outside")
    child.expect(f"{before['in_use'] / 2**20:.1f}M")
    child.send("R")
    child.expect("only reads this")
    child.send("q")
    code, said = ended(child)
    assert code == 0 and "read from outside, it goes on" in said and "recorded in" in said
    assert training.do("figures") == before
    [name] = kept_recordings()
    child = start("why", name, size=(140, 40))
    child.expect(r"Not\s+known\s+from\s+outside")  # wherever the lines break
    assert ended(child)[0] == 0


@pytest.mark.tensorflow
def test_once_tells_its_pools_and_that_they_are_read_from_outside(training: Reporting) -> None:
    """A sweep has a time limit: on a busy machine it may miss a process, which the next one then reads."""
    figures = training.do("figures")
    command = [PROGRAM, "--once", "--json", "--loop", "0.1"]
    seen: set[str] = set()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as running:
        assert running.stdout is not None
        ends = time.monotonic() + PATIENCE_S
        for line in running.stdout:
            assert time.monotonic() < ends, seen
            told = json.loads(line)
            if told["type"] == "session" and seen >= {"process", "allocator"}:
                break
            if told.get("pid") == training.pid:
                seen.add(told["type"])
                if told["type"] == "allocator":
                    assert told["outside"] is True and {name: told[name] for name in figures} == figures
        running.terminate()
    assert seen >= {"process", "allocator"}


def test_what_cannot_be_attached_to_is_said_in_one_line(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    for arguments, text, code in (
        ([str(gone.pid)], f"there is no process {gone.pid}", 1),
        (["abc", "--record", "f"], "--record needs the number of a process", 2),
    ):
        assert main(["attach", *arguments]) == code
        said = capsys.readouterr().err
        assert text in said and said.count("\n") == 1
