"""Behaviour that only a GPU shows. Run by hand on a GPU: ``pytest -m gpu``."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.gpu.recorded import MIB, held, kept, record
from tfmemtop import events
from tfmemtop.cli.launch import ask_machine
from tfmemtop.findings.review import RunReview, review
from tfmemtop.findings.rules.settings import GrowthDiffers

# These scripts end sooner than a first build of the probe.
pytestmark = pytest.mark.usefixtures("built")

SCRIPT = Path(__file__).parents[1] / "scripts" / "seeds" / "hold_memory.py"


def watch(folder: Path, options: list[str], arguments: list[str]) -> tuple[dict[str, Any], list[events.Event]]:
    """Run the script. Return its own figures, and the events that tfmemtop recorded."""
    path = kept(folder) / f"{folder.parent.name}-{folder.name}.jsonl"
    done, stream = record(path, options, str(SCRIPT), *arguments)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout), stream


SETTINGS = {
    "growth-off": (["--growth", "off"], ["256", "512", "3", "--growth"]),
    "limit": (["--memory-limit", "2G"], ["256", "512", "3"]),
    "growth-and-limit": (["--growth", "on", "--memory-limit", "2G"], ["256", "512", "3"]),
    "two-logical-devices": (["--growth", "on"], ["64", "128", "3", "--split"]),
}


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
