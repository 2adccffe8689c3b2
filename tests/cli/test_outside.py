"""A process that was started without tfmemtop, read by the commands ``attach PID`` and ``--once --json``."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.engine.reporting import Reporting
from tests.forked import Forking
from tests.patience import until
from tests.starting import PROGRAM, Start, ended
from tfmemtop.cli.main import main
from tfmemtop.engine.stream.kept_sessions import kept_recordings


@pytest.fixture(scope="module")
def training(tensorflow_bare: Forking) -> Iterator[Reporting]:
    found = Reporting(128, imported=tensorflow_bare)
    found.do("import")
    found.do("take 5000000")
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
    child.expect("which only")
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
    figures = training.do("figures")

    def read() -> list[dict[str, Any]]:
        command = [PROGRAM, "--once", "--json"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        # A sweep has a time limit: on a busy machine it may miss a process.
        known = any(one["type"] == "allocator" and one["pid"] == training.pid for one in lines)
        return lines if known else []

    lines = until(read)
    found = [one for one in lines if one["type"] == "allocator" and one["pid"] == training.pid]
    assert found[0]["outside"] is True and {name: found[0][name] for name in figures} == figures
    assert any(one["type"] == "process" and one["pid"] == training.pid for one in lines)


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
