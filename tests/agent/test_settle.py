"""The user's settings are compared with the script's own, in TensorFlow's own context code.

The scripts add GPUs to the list where TensorFlow keeps the devices that it found. So a machine needs no GPU for this.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.hooked import Forks, Monitor, outcome, start
from tests.once import once

MIB, GIB = 1 << 20, 1 << 30

ASK = """
import json, sys
import tensorflow as tf
from tensorflow.python.eager import context

def ask(wishes):
    context._context = None
    found = context.context()
    found._initialize_physical_devices()
    gpus = [context.PhysicalDevice("/physical_device:GPU:%d" % i, "GPU") for i in range(2)]
    found._physical_devices += gpus
    found._visible_device_list += gpus
    found._memory_growth_map.update((gpu, None) for gpu in gpus)
    wishes(gpus)
    options = found._compute_gpu_options()
    assert found.config.gpu_options == options, "asked again it says the same"
    made = options.experimental.virtual_devices
    return [options.allow_growth, options.visible_device_list, [list(device.memory_limit_mb) for device in made],
            [list(device.device_ordinal) for device in made]]

parts = tf.config.LogicalDeviceConfiguration
configure = tf.config.set_logical_device_configuration
grow = tf.config.experimental.set_memory_growth

cases = {
    "nothing": lambda gpus: None,
    "growth": lambda gpus: [grow(gpu, True) for gpu in gpus],
    "one hidden": lambda gpus: tf.config.set_visible_devices(gpus[1:], "GPU"),
    "all hidden": lambda gpus: tf.config.set_visible_devices([], "GPU"),
    "limited": lambda gpus: [configure(gpu, [parts(1024)]) for gpu in gpus],
    "divided": lambda gpus: configure(gpus[0], [parts(1000, None, 1), parts(3000, None, 0)]),
    "growth, then a limit": lambda gpus: [grow(gpus[0], True), grow(gpus[1], True), configure(gpus[1], [parts(512)])],
}
print(json.dumps({name: ask(wishes) for name, wishes in cases.items()}))
"""

SETTINGS: dict[str, dict[str, Any]] = {
    "growth": {"growth": "on"},
    "no growth": {"growth": "off"},
    "limit": {"memory_limit": 2 * GIB},
}


@pytest.fixture(scope="module")
def answers(shared: Path) -> dict[str, dict[str, list[Any]]]:
    folder = once(shared, "settle", ask_all)
    return {name: json.loads((folder / f"{name}.json").read_text()) for name in SETTINGS}


def ask_all(folder: Path) -> None:
    """Write TensorFlow's options under each of the settings, one JSON file for each, into *folder*."""
    path = folder / "ask.py"
    path.write_text(ASK)
    (folder / "hook.sock").unlink(missing_ok=True)  # left by an attempt that failed
    monitor = Monitor(folder / "hook.sock")
    started = {
        name: start(monitor, str(path), TFMEMTOP_SETTINGS=json.dumps(settings)) for name, settings in SETTINGS.items()
    }
    for name, process in started.items():
        told = outcome(process)
        assert told.code == 0, told.err
        (folder / f"{name}.json").write_text(told.out)
    monitor.end()


@pytest.mark.parametrize(
    ("settings", "script", "expected"),
    [
        ("growth", "nothing", [True, "0,1", [], []]),
        ("growth", "limited", [True, "0,1", [[1024], [1024]], [[], []]]),
        ("growth", "all hidden", [False, "", [], []]),
        ("no growth", "growth", [False, "0,1", [], []]),
        ("limit", "nothing", [False, "0,1", [[2048], [2048]], [[], []]]),
        ("limit", "growth", [True, "0,1", [[2048], [2048]], [[], []]]),
        ("limit", "one hidden", [False, "1", [[2048]], [[]]]),
        ("limit", "limited", [False, "0,1", [[2048], [2048]], [[], []]]),
        ("limit", "divided", [False, "0,1", [[512, 1536], [2048]], [[1, 0], []]]),
    ],
)
def test_the_users_choice_wins(
    answers: dict[str, dict[str, list[Any]]], settings: str, script: str, expected: list[Any]
) -> None:
    assert answers[settings][script] == expected


def test_the_monitor_hears_what_the_script_asked_for(
    monitor: Monitor, script: Callable[[str], str], tmp_path: Path, forks: Forks
) -> None:
    source = ASK.partition("print(")[0] + "ask(cases['growth, then a limit']); ask(cases['divided'])"
    assert forks.run(monitor, script(source)).code == 0
    heard = [(event["call"], event["devices"], event["growth"], event["logical"]) for event in monitor.of("requested")]
    divide = "set_logical_device_configuration"
    assert heard == [
        ("set_memory_growth", ["GPU:0"], True, None),
        ("set_memory_growth", ["GPU:1"], True, None),
        (divide, ["GPU:1"], None, [{"limit": 512 * MIB}]),
        (divide, ["GPU:0"], None, [{"limit": 1000 * MIB}, {"limit": 3000 * MIB}]),
    ]
    assert all(event["error"] is None for event in monitor.of("requested"))
