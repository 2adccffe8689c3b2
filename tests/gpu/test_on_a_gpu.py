"""Behaviour that only a GPU shows. Run by hand on a GPU: ``pytest -m gpu``."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.gpu.recorded import MIB, held, kept, record
from tfmemtop import events
from tfmemtop.cli.launch import ask_machine
from tfmemtop.events import recording
from tfmemtop.findings.review import RunReview, review
from tfmemtop.findings.rules.settings import AskedTooLate, GrowthDiffers, GrowthWordIgnored

# These scripts end sooner than a first build of the probe.
pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("built")]

SCRIPT = Path(__file__).parents[1] / "scripts" / "seeds" / "hold_memory.py"


def watch(folder: Path, options: list[str], arguments: list[str]) -> tuple[dict[str, Any], list[events.Event]]:
    """Run the script. Return its own figures, and the events that tfmemtop recorded."""
    path = kept(folder) / f"{folder.parent.name}-{folder.name}.jsonl"
    done, stream = record(path, options, str(SCRIPT), *arguments)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout), stream


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
        # This is context, workspaces of libraries, and kernels. On an H200 it was 608 MiB; no setting changes that.
        assert 400 * MIB < said["process_total"] - held_by_pools < 900 * MIB
    devices = [event for event in still if isinstance(event, events.DeviceReading)]
    shares = [process.used for event in devices for process in event.processes if process.pid == readings[0].pid]
    assert shares and set(shares) == {said["process_total"]}


def effective(stream: list[events.Event]) -> list[events.Effective]:
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
    assert asked and asked[0].call == events.Call.SET_MEMORY_GROWTH and asked[0].error is None


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
    done, stream = record(tmp_path / "oom.jsonl", ("--memory-limit", "1G"), str(SCRIPT), "2048", "2048", "1")
    assert done.returncode == 1
    assert "ResourceExhaustedError" in done.stderr
    assert any(isinstance(event, events.OutOfMemory) for event in stream)
    summary = done.stderr[done.stderr.index("tfmemtop") :]
    assert "1 out-of-memory error" in summary


def look_back(folder: Path, source: str, **environment: str) -> tuple[RunReview, int]:
    """Run *source* under ``tfmemtop record``. Return the review of the run, and its exit code."""
    script = folder / "train.py"
    script.write_text(source)
    done, stream = record(folder / "run.jsonl", (), str(script), variables=environment)
    return review(iter(stream)), done.returncode


WAITING = """
import time
import tensorflow as tf
for gpu in tf.config.list_physical_devices("GPU"):
    tf.config.experimental.set_memory_growth(gpu, GROWTH)
tf.config.list_logical_devices()
time.sleep(1.5)
tf.matmul(tf.ones([2048, 2048]), tf.ones([2048, 2048]))
time.sleep(1.5)
"""


@pytest.mark.parametrize("growth", ["True", "False"])
def test_the_context_is_measured_before_anything_is_computed(growth: str, tmp_path: Path) -> None:
    seen, _ = look_back(tmp_path, WAITING.replace("GROWTH", growth))
    account = seen.account
    assert account is not None and account.context_exact and account.context is not None
    # 520 MiB on an H200, driver 580.
    assert 200 * MIB < account.context < 900 * MIB
    # Memory that came with the matmul is outside: at least cuBLAS's workspace.
    assert account.outside is not None and account.outside >= 16 * MIB


def test_the_cards_are_read_at_once_when_the_devices_are_there(tmp_path: Path) -> None:
    look_back(tmp_path, WAITING.replace("GROWTH", "True"))
    stream = list(recording.read(tmp_path / "run.jsonl").events())
    made = next(event for event in stream if isinstance(event, events.Initialised))
    soon = [event for event in stream if isinstance(event, events.DeviceReading) and 0 < event.t - made.t < 0.25]
    assert made.pid in {process.pid for read in soon for process in read.processes}


def test_growth_asked_for_too_late_names_what_made_the_devices(tmp_path: Path) -> None:
    source = """
import time
import tensorflow as tf
weights = tf.Variable([1.0])
try:
    tf.config.experimental.set_memory_growth(tf.config.list_physical_devices("GPU")[0], True)
except RuntimeError:
    time.sleep(1)
"""
    seen, _ = look_back(tmp_path, source)
    (late,) = [held.finding for held in seen.held if isinstance(held.finding, AskedTooLate)]
    assert "train.py:6: set_memory_growth(GPU:0, True) came too late" in late.said.text
    assert "train.py:4 (weights = tf.Variable([1.0])) had TensorFlow make its devices before" in late.said.text


def test_a_word_that_tensorflow_ignores_is_found_in_the_recording(tmp_path: Path) -> None:
    seen, _ = look_back(tmp_path, WAITING.replace("GROWTH", "True"), TF_FORCE_GPU_ALLOW_GROWTH="1")
    (ignored,) = [held.finding for held in seen.held if isinstance(held.finding, GrowthWordIgnored)]
    assert "TF_FORCE_GPU_ALLOW_GROWTH=1 is ignored" in ignored.said.text
    growths = {e.growth for e in seen.state.run.effective.values()} if seen.state.run else set()
    assert growths == {True}, "as the script asked"


DIFFERENT = """
import tensorflow as tf
tf.config.experimental.set_memory_growth(tf.config.list_physical_devices("GPU")[0], True)
try:
    tf.ones(3)
except ValueError:
    pass
"""


@pytest.mark.gpus2
@pytest.mark.parametrize("catches", [True, False])
def test_growth_that_differs_between_two_cards(catches: bool, tmp_path: Path) -> None:
    if len(ask_machine().uuids) < 2:
        pytest.skip("with one card growth cannot differ")
    seen, code = look_back(tmp_path, DIFFERENT if catches else DIFFERENT.replace("ValueError", "KeyError"))
    assert code == (0 if catches else 1)
    (differs,) = [held.finding for held in seen.held if isinstance(held.finding, GrowthDiffers)]
    assert "at train.py:5, since memory growth differs between the GPUs" in differs.said.text
    assert "GPU:0 only" in differs.said.text
