"""The hook, put into a notebook's kernel that was started without tfmemtop, in a Python that allows this."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines import Engines, engines
from tests.newer_python import found, has_tensorflow, needs_it
from tests.notebook import Notebook, jupyter
from tfmemtop.events import Allocator, Census, HookError, Injection, InjectionState, Requested, RunEnd
from tfmemtop.findings.names import spot

__all__ = ["engines", "jupyter"]  # the fixtures

pytestmark = pytest.mark.tensorflow

MIB = 1 << 20
IN_USE = "print(tf.config.experimental.get_memory_info('CPU:0')['current'])"


@pytest.fixture
def notebook(jupyter: Path) -> Iterator[Notebook]:
    python = str(found())
    if subprocess.run([python, "-c", "import ipykernel"], capture_output=True, check=False).returncode:
        pytest.skip("that Python has no ipykernel")
    spec = jupyter / "data" / "kernels" / "newer"
    spec.mkdir(parents=True)
    argv = [python, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (spec / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "newer", "language": "python"}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TF_CPU_ALLOCATOR_USE_BFC", "true")
        patch.setenv("TF_CPU_BFC_MEM_LIMIT_IN_MB", "256")
        patch.setenv("TF_CPP_MIN_LOG_LEVEL", "3")
        made = Notebook("newer", cwd=jupyter)
    yield made
    made.end(now=True)


@needs_it
@pytest.mark.skipif(not has_tensorflow(), reason="that Python has no TensorFlow")
async def test_what_was_made_before_is_known_and_lines_are_those_of_the_cells(
    engines: Engines, notebook: Notebook
) -> None:
    notebook.run("import tensorflow as tf\nweights = tf.Variable(tf.ones([1024, 1024]), name='weights')")
    screen = await engines.run(attach=notebook.pid, inject=True)
    await screen.until(Injection, lambda one: one.state is InjectionState.ASKED)
    assert notebook.run("print('next')") == "next\n"  # an idle kernel starts the hook with its next cell
    await screen.until(Injection, lambda one: one.state is InjectionState.ARRIVED)
    census = await screen.until(Census)
    assert [(one.name, one.bytes) for one in census.largest] == [("weights", 4 * MIB)]

    refused = notebook.run("1\ntf.config.set_visible_devices([], 'CPU')")
    assert refused.startswith("RuntimeError: Visible devices cannot be modified")
    asked = await screen.until(Requested, lambda one: one.line == 2)
    assert spot(asked.file, asked.line) == "In [3]:2"

    in_use = int(notebook.run(f"more = tf.ones([512, 1024])\n{IN_USE}"))
    assert (await screen.until(Allocator, lambda one: one.in_use == in_use)).device == "CPU:0"
    assert notebook.run("1 / 0") == "ZeroDivisionError: division by zero"
    notebook.end()
    await screen.until(RunEnd)
    assert not screen.all(HookError)
