"""``tfmemtop doctor`` as a user runs it, and its checks on simulated machines."""

import json
import subprocess
import sys
import threading
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.nvml_tables import TABLES, play
from tests.starting import tfmemtop
from tfmemtop.cli import doctor as command
from tfmemtop.cli.doctor import Check, CheckState, missing, ok, run_all
from tfmemtop.cli.interpreter import Interpreter, Unclear
from tfmemtop.engine.sources.nvml import Nvml
from tfmemtop.engine.sources.nvml_calls import NO_DRIVER

NAMES = ["driver", "processes", "hook", "tensorflow", "pools", "compiler", "sockets", "terminal"]


def doctor(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return tfmemtop("doctor", *words, variables=environment)


def rows(done: subprocess.CompletedProcess[str]) -> dict[str, tuple[str, str]]:
    assert "Traceback" not in done.stderr, done.stderr
    parts = [line.split(maxsplit=2) for line in done.stdout.splitlines()]
    return {name: (state, text) for name, state, text in parts}


@pytest.mark.tensorflow
def test_a_line_for_each_thing_and_nothing_of_the_users_is_run(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    done = doctor("--", sys.executable, str(script))
    found = rows(done)
    assert [*found] == NAMES
    assert found["hook"][0] == "ok" and sys.executable in found["hook"][1]
    tensorflow = find_spec("tensorflow")
    assert tensorflow is not None and found["tensorflow"][0] == "ok"
    assert str(Path(str(tensorflow.origin)).parent) in found["tensorflow"][1]
    assert found["sockets"][0] == "ok"
    assert done.returncode == int(any(state == "missing" for state, _ in found.values()))
    assert not (tmp_path / "ran").exists()


@pytest.mark.programs
def test_what_is_missing_comes_with_its_remedy_and_ends_with_1(tmp_path: Path) -> None:
    done = doctor("--", sys.executable, "-I", "train.py")
    assert done.returncode == 1
    state, text = rows(done)["hook"]
    assert state == "missing" and "start it without -I" in text
    done = doctor("--", "no-such-command")
    assert done.returncode == 1
    assert rows(done)["tensorflow"][1].startswith("no-such-command: command not found")
    # There is no compiler, as in most containers.
    empty = tmp_path / "bin"
    empty.mkdir()
    for needed in ("bash", "readlink", "env"):
        (empty / needed).symlink_to(f"/usr/bin/{needed}")
    found = rows(doctor("--", sys.executable, "train.py", PATH=str(empty), CXX=""))
    assert found["compiler"] == ("missing", "there is no C++ compiler; install g++")


@pytest.mark.programs
def test_json_holds_the_same() -> None:
    done = doctor("--json")
    told = json.loads(done.stdout)
    assert [check["name"] for check in told["checks"]] == NAMES
    assert told["complete"] is (done.returncode == 0)
    assert {check["state"] for check in told["checks"]} <= {"ok", "missing", "unknown"}
    states = {check["name"]: check for check in told["checks"]}
    assert states["hook"]["state"] == "unknown"


@pytest.mark.parametrize(
    ("table", "driver", "processes"),
    [
        ("H100", ("ok", "580.159.04, 1 GPU: NVIDIA H100 80GB HBM3"), ("ok", "the driver reports memory per process")),
        ("another library than the kernel's module", ("missing", "does not fit the loaded kernel"), ("ok", "no GPU")),
        ("no permission", ("missing", "no permission to talk to the NVIDIA driver"), ("ok", "no GPU")),
        ("MIG, not root", ("ok", "MIG 1g.10gb"), ("missing", "to root only; run as root")),
    ],
)
def test_the_driver(tmp_path: Path, table: str, driver: tuple[str, str], processes: tuple[str, str]) -> None:
    (tmp_path / "proc/self/ns").mkdir(parents=True)
    (tmp_path / "proc/self/ns/pid").symlink_to("pid:[4026531836]")
    reading, version = command.read_driver(Nvml(play(TABLES[table]), wsl=TABLES[table].wsl))
    for check, (state, said) in (
        (command.driver(reading, version, tmp_path), driver),
        (command.shares(reading, tmp_path), processes),
    ):
        assert check.state == state
        assert said in f"{check.text}; {check.remedy}"


def test_a_card_without_a_driver_is_something_missing(tmp_path: Path) -> None:
    reading, version = command.read_driver(Nvml(play(TABLES["H100"])))
    nothing = reading._replace(devices=[], readings=[], troubles=[NO_DRIVER])
    assert command.driver(nothing, version, tmp_path).state == "ok"
    slot = tmp_path / "sys/bus/pci/devices/0000:01:00.0"
    slot.mkdir(parents=True)
    (slot / "vendor").write_text("0x10de\n")
    (slot / "class").write_text("0x030200\n")
    found = command.driver(nothing, version, tmp_path)
    assert found.state == "missing" and "install its driver" in found.remedy


def test_in_a_container_numbers_are_said_to_be_others(tmp_path: Path) -> None:
    (tmp_path / "proc/self/ns").mkdir(parents=True)
    (tmp_path / "proc/self/ns/pid").symlink_to("pid:[4026532266]")
    reading, _ = command.read_driver(Nvml(play(TABLES["from inside, 580"])))
    check = command.shares(reading, tmp_path)
    assert check.state is CheckState.UNKNOWN and check.remedy == "start the container with --pid=host"


@pytest.mark.programs
def test_what_leads_to_the_pools(tmp_path: Path) -> None:
    compiler = ok("compiler", "g++ 12")
    none = missing("compiler", "there is no C++ compiler", "apt-get install g++")

    def asked(folder: Path | None, version: str = "0.1") -> Interpreter:
        return Interpreter("3.11.4", "/usr/bin/python3", True, version, str(folder) if folder else None)

    assert command.pools(None, compiler).state == "unknown"
    assert command.pools(Unclear("x is not a Python"), compiler).state == "unknown"
    assert command.pools(asked(None), compiler).state == "unknown"
    assert command.pools(asked(tmp_path), compiler).state == "missing"
    (tmp_path / "libtensorflow_framework.so.2").touch()
    assert "headers" in command.pools(asked(tmp_path), compiler).text
    header = tmp_path / "include/tensorflow/core/common_runtime/bfc_allocator.h"
    header.parent.mkdir(parents=True)
    header.touch()
    built = command.pools(asked(tmp_path), compiler)
    assert built.state is CheckState.OK and "the first run builds" in built.text
    without = command.pools(asked(tmp_path), none)
    assert without.state is CheckState.MISSING
    assert "there is no C++ compiler" in without.text and without.remedy == "apt-get install g++"


def test_a_check_that_hangs_or_fails_holds_up_none() -> None:
    never = threading.Event()

    def hang() -> list[Check]:
        never.wait()
        return []

    def fail() -> list[Check]:
        raise ValueError("odd")

    fine = ok("d", "no GPU")
    found = run_all({("a", "b"): hang, ("c",): fail, ("d",): lambda: [fine]}, 0.2)
    never.set()
    assert [check.name for check in found] == ["a", "b", "c", "d"] and found[3] is fine
    assert [check.state for check in found[:3]] == [CheckState.UNKNOWN] * 3
    assert "no answer" in found[1].text and "ValueError: odd" in found[2].text
