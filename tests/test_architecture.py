"""The page for contributors names only files and tests that exist, and its examples work."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "tfmemtop"
PAGE = (PACKAGE / "ARCHITECTURE.md").read_text()
PROSE = re.sub(r"^```.*?^```", "", PAGE, flags=re.MULTILINE | re.DOTALL)
NAMED = sorted({name for name in re.findall(r"`([^`\s]+)`", PROSE) if re.search(r"\.(py|md)\b|/$", name)})


@pytest.mark.parametrize("name", NAMED)
def test_every_file_and_test_that_it_names_exists(name: str) -> None:
    path, _, test = name.partition("::")
    found = next((each for each in (ROOT / path, PACKAGE / path, PACKAGE / "inject" / path) if each.exists()), None)
    assert found is not None
    assert not test or re.search(rf"^(async )?def {test}\(", found.read_text(), re.MULTILINE)


def test_every_room_is_on_the_map() -> None:
    rooms = {path.parent.name for path in PACKAGE.glob("*/*.py")} - {"demo"}
    assert {room for room in rooms if re.search(rf"^\|.*`{room}/`", PAGE, re.MULTILINE)} == rooms


def test_it_takes_two_screens() -> None:
    assert len(PAGE.splitlines()) <= 120


# Loads each example as the module that its first line names, as if that file existed, and uses these modules.
USE = """
import io, sys, types, contextlib
from tests import streams
from tfmemtop import cli as commands

for code in sys.stdin.read().split("\\0"):
    name = code.split()[1].removesuffix(".py").replace("/", ".")
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(code, name, "exec"), module.__dict__)

from tfmemtop import events
from tfmemtop.cli.parser import parse
from tfmemtop.events.collected import LONGEST, Collected
from tfmemtop.findings.judgement import findings, kinds, judged

little = events.ProcessReadings(t=1, processes=[], host_used=62 * streams.GIB)
state = streams.fold([streams.session(), little, Collected(t=2, pid=7, took_us=80), Collected(t=3, pid=7, took_us=30)])
assert LONGEST == {7: 80}
(found,) = findings(state)
assert found.said.text == "2.0 GiB of the host's memory are free." and type(found) in kinds()
assert not findings(streams.fold([streams.session()]))
state = streams.fold([streams.session(), streams.run(), little])
assert judged(state, findings(state), going=True)[0].key == "host_nearly_full"

commands.NAMES += ("where",)
import tfmemtop.cli.parser
tfmemtop.cli.parser.NAMES = commands.NAMES
tfmemtop.cli.parser._summary = str  # there is no such file to read it from
call = parse(["where"])
with contextlib.redirect_stdout(io.StringIO()) as printed:
    assert call.run(call.arguments) == 0
assert printed.getvalue().strip().endswith("tfmemtop")
"""


@pytest.mark.programs
def test_its_examples_work(tmp_path: Path) -> None:
    examples = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert len(examples) == 3
    done = subprocess.run(
        [sys.executable, "-c", USE],
        input="\0".join(examples),
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "XDG_STATE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
