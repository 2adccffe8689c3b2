"""The agent reads JAX, PyTorch, CuPy and RMM, and neither initialises nor changes them."""

import subprocess
from pathlib import Path

import pytest

from tests import sparing
from tests.hooked import PYTHON, Event, Monitor, Script, both, line, outcome, run, start, typed
from tests.stand_ins import FIGURES, USED, UUID, write_stand_ins

WAITING = "import sys; sys.stdin.readline()\n"
NAMES = ("in_use", "held", "peak", "limit")


@pytest.fixture
def stand_ins(tmp_path: Path) -> str:
    return write_stand_ins(tmp_path / "packages")


def reading_of(monitor: Monitor, device: str) -> Event:
    return monitor.wait_for(lambda event: event.get("device") == device)


def test_each_framework_is_read_by_its_own_figures(monitor: Monitor, script: Script, stand_ins: str) -> None:
    settings = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
    process = start(monitor, script(USED + WAITING), PYTHONPATH=stand_ins, **settings)
    readings = {device: reading_of(monitor, device) for device in FIGURES}
    assert outcome(process, "\n") == (0, "", "")
    assert {device: {name: one[name] for name in NAMES} for device, one in readings.items()} == FIGURES
    assert {one["uuid"] for one in readings.values()} == {UUID}
    assert readings["JAX:0"]["settings"] | readings["PyTorch:0"]["settings"] == settings
    versions = {"jax": "0.7.0", "pytorch": "2.8.0", "cupy": "13.4.1", "rmm": "25.08.00"}
    imported = {one["name"]: one["version"] for one in monitor.of("hook")[-1]["frameworks"]}
    assert imported == versions and monitor.of("hook")[-1]["tensorflow"] is None
    assert monitor.of("hook_end")


def test_nothing_is_read_before_the_script_initialises_it(monitor: Monitor, script: Script, stand_ins: str) -> None:
    path = script(USED.partition("cuda_driver.initialise")[0] + WAITING)
    bare, hooked = start(None, path, PYTHONPATH=stand_ins), start(monitor, path, PYTHONPATH=stand_ins)
    monitor.wait_for(lambda event: event["type"] == "hook" and len(event["frameworks"]) == 4)
    assert outcome(bare, "\n") == outcome(hooked, "\n") == (0, "", "")
    assert not monitor.of("framework")


def test_pytorch_alone_is_read_from_its_initialisation_on(monitor: Monitor, script: Script, stand_ins: str) -> None:
    """No import follows, and until then the script has a single thread."""
    process = start(monitor, script("import torch\ntorch.cuda.use()\n" + WAITING), PYTHONPATH=stand_ins)
    assert monitor.wait_for(lambda event: event["type"] == "framework")["framework"] == "pytorch"
    assert outcome(process, "\n").code == 0


def test_jax_alone_is_read_from_its_first_compilation_on(monitor: Monitor, script: Script, stand_ins: str) -> None:
    source = "import jax\nimport colorsys\njax._src.xla_bridge.use()\nimport wave\n" + WAITING
    process = start(monitor, script(source), PYTHONPATH=stand_ins)
    assert monitor.wait_for(lambda event: event["type"] == "framework")["framework"] == "jax"
    assert outcome(process, "\n").code == 0


def test_an_allocator_without_figures_is_told(monitor: Monitor, script: Script, stand_ins: str) -> None:
    source = USED.replace("use()", "use(jax._src.xla_bridge.Bare)", 1) + WAITING
    process = start(monitor, script(source), PYTHONPATH=stand_ins, XLA_PYTHON_CLIENT_ALLOCATOR="platform")
    reading = reading_of(monitor, "JAX:0")
    assert {reading[name] for name in NAMES} == {None}
    assert reading["settings"] == {"XLA_PYTHON_CLIENT_ALLOCATOR": "platform"}
    assert outcome(process, "\n").code == 0


ELSEWHERE = """
import threading
import cuda_driver, cupy, rmm
threading.Thread(target=threading.Event().wait, daemon=True).start()
import colorsys
cuda_driver.initialise(1)
"""


def test_only_the_gpus_that_the_script_uses_are_touched(monitor: Monitor, script: Script, stand_ins: str) -> None:
    process = start(monitor, script(ELSEWHERE + WAITING), PYTHONPATH=stand_ins)
    reading_of(monitor, "CuPy:1")
    before = len(monitor.of("framework"))
    monitor.wait_for(lambda _: len(monitor.of("framework")) > before)
    assert outcome(process, "\n") == (0, "", "")
    assert {event["device"] for event in monitor.of("framework")} == {"CuPy:1"}


def test_pytorch_without_figures_is_no_failure(monitor: Monitor, script: Script, stand_ins: str) -> None:
    source = USED.replace("torch.cuda.use()", "torch.cuda.plug()\ntorch.cuda.use()") + WAITING
    process = start(monitor, script(source), PYTHONPATH=stand_ins)
    reading_of(monitor, "RMM:0")
    reading_of(monitor, "CuPy:0")
    assert outcome(process, "\n") == (0, "", "")
    assert "PyTorch:0" not in {event["device"] for event in monitor.of("framework")}


def test_within_a_block_of_statistics_rmm_may_have_freed_more(monitor: Monitor, script: Script, stand_ins: str) -> None:
    source = USED.replace("torch.cuda.use()", "rmm.mr.Statistics.current_bytes = -1") + WAITING
    process = start(monitor, script(source), PYTHONPATH=stand_ins)
    reading = reading_of(monitor, "RMM:0")
    assert (reading["in_use"], reading["held"]) == (None, FIGURES["RMM:0"]["held"])
    assert outcome(process, "\n") == (0, "", "")


IMPORTING = """
import builtins, sys, threading
import cuda_driver, rmm
threading.Thread(target=threading.Event().wait, daemon=True).start()
cuda_driver.initialise()
builtins.pause = lambda: (print("within", flush=True), sys.stdin.readline())
import cupy
"""


def test_a_framework_is_read_once_its_import_has_ended(monitor: Monitor, script: Script, stand_ins: str) -> None:
    package = Path(stand_ins, "cupy", "__init__.py")
    version, *source = package.read_text().strip().splitlines()
    package.write_text("\n".join([*source, version]).replace("_pool =", "pause()\n_pool ="))
    process = start(monitor, script(IMPORTING + WAITING), PYTHONPATH=stand_ins)
    assert line(process) == "within"
    before = len(monitor.of("framework"))
    monitor.wait_for(lambda _: len(monitor.of("framework")) > before + 3)  # RMM is read meanwhile
    assert {event["framework"] for event in monitor.of("framework")} == {"rmm"}
    typed(process)
    reading_of(monitor, "CuPy:0")
    assert outcome(process, "\n").code == 0
    versions = [
        {one["name"]: one["version"] for one in hello["frameworks"]}.get("cupy") for hello in monitor.of("hook")
    ]
    assert versions[-1] == "13.4.1" and versions.count("13.4.1") == 1


FORKING = """
import os, warnings
warnings.simplefilter("error")
import torch
child = os.fork()
if not child:
    import colorsys
    print(len(os.listdir("/proc/self/task")), flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""


def test_a_fork_of_a_script_without_threads_warns_of_none(monitor: Monitor, script: Script, stand_ins: str) -> None:
    bare, hooked = both(monitor, script(FORKING), PYTHONPATH=stand_ins)
    assert bare == hooked == (0, "1\n", "")


def test_a_search_for_a_framework_is_no_import(monitor: Monitor, script: Script, stand_ins: str) -> None:
    names = ["jax", "torch", "cupy", "rmm"]
    look = script(f"import importlib.util as u; print([bool(u.find_spec(name)) for name in {names}])")
    assert run(monitor, look, PYTHONPATH=stand_ins).out == f"{[True] * 4}\n"
    assert not monitor.events


REAL = {
    "jax": """
import jax, jax.numpy as jnp
from jax._src import xla_bridge
print(xla_bridge._backends)
x = jnp.ones((64, 64)); print(float((x @ x)[0, 0]), sorted(xla_bridge._backends), jax.local_devices())
""",
    "torch": """
import torch
x = torch.ones(64, 64); print(float((x @ x)[0, 0]), torch.cuda.is_initialized(), torch.cuda.is_available())
try:
    torch.cuda.init()
except AssertionError as error:
    print(error)
""",
}


@pytest.mark.parametrize("framework", REAL)
def test_the_real_one_is_neither_initialised_nor_changed(monitor: Monitor, script: Script, framework: str) -> None:
    found = f"import sys, importlib.util as u; sys.exit(u.find_spec('{framework}') is None)"
    if subprocess.run([PYTHON, "-c", found]).returncode:
        pytest.skip(f"{framework} is not installed")
    path = script(REAL[framework])
    process = start(monitor, path)
    bare, hooked = outcome(start(None, path)), outcome(process)
    assert bare == hooked and bare.code == 0
    assert process.pid in {event["pid"] for event in monitor.of("hook")}
    assert not monitor.of("framework")


BEFORE_TENSORFLOW = """
import torch, threading, colorsys
threading.Thread(target=threading.Event().wait, daemon=True).start()
import wave
import tensorflow as tf
kept = tf.zeros([1 << 20])
import sys; sys.stdin.readline()
"""


@pytest.mark.tensorflow
def test_tensorflow_that_is_imported_later_is_read_as_ever(
    monitor: Monitor, script: Script, stand_ins: str, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    spared = sparing.variables("")
    spared["PYTHONPATH"] = f"{stand_ins}:{spared['PYTHONPATH']}"
    process = start(monitor, script(BEFORE_TENSORFLOW), TFMEMTOP_DATA=str(data), **spared)
    reading = monitor.wait_for(lambda event: event["type"] == "allocator" and event["in_use"] >= 4 << 20)
    assert reading["pool"] >= reading["in_use"]
    monitor.say(process.pid, {"do": "maps", "wanted": [[None, None, 0.1]]})
    monitor.wait_for(lambda event: event["type"] == "chunks")
    assert outcome(process, "\n").code == 0
    assert monitor.of("hook")[-1]["tensorflow"]
