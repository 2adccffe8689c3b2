"""A card's traffic, who else is on it, and the choice by free memory. Run by hand: ``pytest -m gpu``, ``-m gpus2``."""

import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.contained import running
from tests.gpu.recorded import MIB, record
from tfmemtop import events
from tfmemtop.cli import once
from tfmemtop.cli.launch import ask_machine
from tfmemtop.engine.sources.nvml import Nvml

GROWTH = """
import sys, time
import tensorflow as tf
for gpu in tf.config.list_physical_devices("GPU"):
    tf.config.experimental.set_memory_growth(gpu, True)
"""

COPIES = (
    GROWTH
    + """
with tf.device("CPU"):
    there = tf.random.uniform([64, 1024, 1024])
until = time.monotonic() + 5
while time.monotonic() < until:
    with tf.device("GPU:0"):
        here = tf.identity(there)
    float(here[0, 0, 0])
"""
)

HOLDS = GROWTH + "kept = tf.zeros([256, 1024, 1024])\nprint('up', flush=True)\nsys.stdin.readline()\n"


def test_copies_to_the_card_are_traffic_over_pcie(tmp_path: Path) -> None:
    (tmp_path / "copies.py").write_text(COPIES)
    done, stream = record(tmp_path / "run.jsonl", (), str(tmp_path / "copies.py"))
    assert done.returncode == 0, done.stderr[-4000:]
    readings = [event for event in stream if isinstance(event, events.DeviceReading)]
    rates = [one.traffic.pcie_in for one in readings if one.traffic and one.traffic.pcie_in is not None]
    assert len(rates) >= 5, "Hopper and newer GPUs have the figure"
    assert 200 * MIB < max(rates) < 200_000 * MIB


def test_a_reading_of_the_counters_does_not_block_the_driver() -> None:
    nvml = Nvml()
    cards = len(nvml.read().readings)
    spans = []
    for _ in range(11):
        time.sleep(0.11)  # the samples of the driver's monitor may not be closer together
        began = time.perf_counter()
        assert nvml.traffic()
        spans.append(time.perf_counter() - began)
    nvml.close()
    print(f"a reading of the traffic takes {statistics.median(spans) * 1000:.2f} ms")
    assert statistics.median(spans) < 0.005 * cards  # nvmlDeviceGetPcieThroughput takes 0.04 s for each card


def test_one_reading_without_a_screen_has_the_traffic_too() -> None:
    nvml = Nvml()
    found, _ = once.read(nvml)
    nvml.close()
    readings = [event for event in found if isinstance(event, events.DeviceReading)]
    assert readings and all(one.traffic is not None for one in readings)


def test_a_training_in_namespaces_of_its_own_has_its_name_and_its_number_there() -> None:
    variables = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "HOSTNAME": "train-0"}
    with running(sys.executable, "-c", HOLDS, variables=variables) as (process, first):
        assert process.stdout is not None and process.stdout.readline() == "up\n"
        nvml = Nvml()
        found, _ = once.read(nvml)
        nvml.close()
        on_card = {share.pid for event in found if isinstance(event, events.DeviceReading) for share in event.processes}
        (seen,) = (event for event in found if isinstance(event, events.Process) and event.pid == first.pid)
    assert first.pid in on_card
    assert seen.workload is not None and seen.workload.pod == "train-0" and seen.inner_pids[-1] == 1


@pytest.mark.gpus2
def test_the_card_with_the_most_free_memory_is_taken(tmp_path: Path) -> None:
    if len(ask_machine().uuids) < 2:
        pytest.skip("with one card there is no choice")
    (tmp_path / "train.py").write_text(GROWTH + "tf.zeros([16]).numpy()\n")
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", HOLDS], stdin=pipe, stdout=pipe, text=True) as other:
        assert other.stdout is not None and other.stdout.readline() == "up\n"  # it holds memory on the first card
        uuids = ask_machine().uuids
        done, stream = record(tmp_path / "run.jsonl", ("--gpus", "free"), str(tmp_path / "train.py"))
        other.kill()
    assert done.returncode == 0, done.stderr[-4000:]
    said = next(line for line in done.stderr.splitlines() if "--gpus free" in line)
    used = {event.uuid for event in stream if isinstance(event, events.Effective) and event.uuid}
    assert "GPU 0" not in said and used and uuids[0] not in used
