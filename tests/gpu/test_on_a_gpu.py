"""What only a GPU shows. Run by hand on one: ``pytest -m gpu``."""

import importlib.util
import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from tests.gpu.keep import kept
from tfmemtop import events, recording
from tfmemtop.probe.build import build

pytestmark = pytest.mark.gpu

SCRIPT = Path(__file__).parents[1] / "scripts" / "hold_memory.py"
MIB = 2**20


@pytest.fixture(autouse=True, scope="session")
def probe() -> None:
    """The probe, built before: these scripts are over sooner than a first build."""
    spec = importlib.util.find_spec("tensorflow")
    assert spec is not None and spec.origin is not None
    built = build(Path(spec.origin).parent, version("tensorflow"))
    assert built.state == "built", built


def watch(folder: Path, options: list[str], arguments: list[str]) -> tuple[dict[str, Any], list[events.AnyEvent]]:
    """What the script says of itself, and what tfmemtop recorded of it."""
    path = kept(folder) / f"{folder.name}.jsonl"
    done = subprocess.run(
        [sys.executable, "-m", "tfmemtop", "record", "-o", path, *options, "--", sys.executable, SCRIPT, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=300,
    )
    return json.loads(done.stdout), list(recording.read(path).events())


def held(said: dict[str, Any], stream: list[events.AnyEvent]) -> list[events.AnyEvent]:
    """The events of the time in which the script held still."""
    session = stream[0]
    assert isinstance(session, events.Session)
    return [event for event in stream if said["since"] + 0.2 < session.started + event.t < said["until"] - 0.2]


SETTINGS = {
    "growth-by-script": ([], ["256", "512", "3", "--growth"]),
    "growth-on": (["--growth", "on"], ["256", "512", "3"]),
    "growth-off": (["--growth", "off"], ["256", "512", "3", "--growth"]),
    "limit": (["--memory-limit", "2G"], ["256", "512", "3"]),
    "growth-and-limit": (["--growth", "on", "--memory-limit", "2G"], ["256", "512", "3"]),
    "async": (["--allocator", "cuda_malloc_async"], ["256", "512", "3"]),
    "two-logical-devices": (["--growth", "on"], ["64", "128", "3", "--split"]),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_figures_agree_with_the_script_and_with_nvml(name: str, tmp_path: Path) -> None:
    options, arguments = SETTINGS[name]
    said, stream = watch(tmp_path, options, arguments)
    still = held(said, stream)
    readings = [event for event in still if isinstance(event, events.Allocator)]
    for device, figures in said["figures"].items():
        mine = [reading for reading in readings if reading.device == device]
        assert len(mine) >= 15
        assert {reading.in_use for reading in mine} == {figures["current"]}
        assert {reading.peak for reading in mine} == {figures["peak"]}
    pools = {reading.device: reading.pool for reading in readings if reading.device.startswith("GPU")}
    if name == "async":
        assert set(pools.values()) == {None}
    else:
        held_by_pools = sum(pool for pool in pools.values() if pool is not None)
        in_use = sum(figures["current"] for figures in said["figures"].values())
        assert None not in pools.values() and held_by_pools >= in_use
        # Context, library workspaces and kernels: 608 MiB were measured on an H200, and no setting changes that.
        assert 400 * MIB < said["process_total"] - held_by_pools < 900 * MIB
    devices = [event for event in still if isinstance(event, events.DeviceReading)]
    shares = [process.used for event in devices for process in event.processes if process.pid == readings[0].pid]
    assert shares and set(shares) == {said["process_total"]}


def effective(stream: list[events.AnyEvent]) -> list[events.Effective]:
    return [event for event in stream if isinstance(event, events.Effective)]


def test_growth_and_a_limit_together(tmp_path: Path) -> None:
    said, stream = watch(tmp_path, *SETTINGS["growth-and-limit"])
    (device,) = effective(stream)
    assert device.growth is True and device.limit == 2048 * MIB
    # The point of growth: far less than the limit is taken, context and libraries included.
    assert said["process_total"] < 2048 * MIB


def test_growth_off_overrides_the_script_and_takes_the_card(tmp_path: Path) -> None:
    said, stream = watch(tmp_path, *SETTINGS["growth-off"])
    assert effective(stream)[0].growth is False
    card = next(event for event in stream if isinstance(event, events.Device))
    assert card.total is not None and said["process_total"] > card.total * 0.9
    asked = [event for event in stream if isinstance(event, events.Requested)]
    assert asked and asked[0].call == "set_memory_growth" and asked[0].error is None


def test_the_scripts_logical_devices_are_kept(tmp_path: Path) -> None:
    _, stream = watch(tmp_path, *SETTINGS["two-logical-devices"])
    assert [(event.device, event.limit) for event in effective(stream)] == [
        ("GPU:0", 1024 * MIB),
        ("GPU:1", 1024 * MIB),
    ]
    assert {event.growth for event in effective(stream)} == {True}


def test_growth_off_takes_all_of_its_limit_and_no_more(tmp_path: Path) -> None:
    said, stream = watch(tmp_path, *SETTINGS["limit"])
    pools = {
        event.pool for event in held(said, stream) if isinstance(event, events.Allocator) and event.device == "GPU:0"
    }
    assert pools == {2048 * MIB}


def test_a_limit_is_where_memory_runs_out(tmp_path: Path) -> None:
    path = tmp_path / "oom.jsonl"
    watched = [sys.executable, "-m", "tfmemtop", "record", "-o", str(path), "--memory-limit", "1G"]
    done = subprocess.run(
        [*watched, "--", sys.executable, str(SCRIPT), "2048", "2048", "1"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 1
    assert "ResourceExhaustedError" in done.stderr
    stream = list(recording.read(path).events())
    assert any(isinstance(event, events.OutOfMemory) for event in stream)
    summary = done.stderr[done.stderr.index("tfmemtop") :]
    assert "1 out-of-memory error" in summary
