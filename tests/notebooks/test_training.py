"""A notebook that trains: its lines are shown as lines of its cells."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.notebook import Notebook
from tests.patience import until
from tests.starting import PROGRAM, ran
from tfmemtop.cli.sessions import fold_recording
from tfmemtop.engine.stream.kept_sessions import place_for
from tfmemtop.findings.judgement import findings
from tfmemtop.findings.rules.retracing import Retraced
from tfmemtop.state import State

pytestmark = pytest.mark.tensorflow

CELLS = [
    "import tensorflow as tf\ncpu = tf.config.list_physical_devices('CPU')[0]",
    "limit = [tf.config.LogicalDeviceConfiguration()]\ntf.config.set_logical_device_configuration(cpu, limit)",
    "weights = tf.Variable(tf.ones([1024, 1024]))\nkept = []",
    """@tf.function
def step(x, n):
    y = tf.nn.gelu(tf.matmul(x, weights))
    return tf.reduce_sum(y) * n""",
    "for n in range(40):\n    step(tf.ones([256, 1024]), n)",
    "for _ in range(5):\n    step(tf.ones([256, 1024]), 3)",
]


@pytest.fixture(scope="module")
def notebook(jupyter: Path) -> Iterator[Notebook]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TF_CPU_ALLOCATOR_USE_BFC", "true")
        patch.setenv("TF_CPU_BFC_MEM_LIMIT_IN_MB", "1024")
        patch.setenv("TF_USE_LEGACY_KERAS", "1")  # Keras is not imported
        made = Notebook(cwd=jupyter)
    for cell in CELLS:
        made.run(cell)
    yield made
    made.end(now=True)


def _told(notebook: Notebook, *command: str) -> str:
    done = ran([PROGRAM, *command, notebook.session().id])
    return done.stdout


def _trained_and_told(notebook: Notebook, *command: str) -> str:
    notebook.run(CELLS[-1])
    return _told(notebook, *command)


def _state(notebook: Notebook) -> State:
    return fold_recording(str(place_for(notebook.session().id)), None)


def test_lines_are_those_of_the_cells(notebook: Notebook) -> None:
    # The finding comes at once, because the function was traced in more than half of its calls. Otherwise it would come
    # after a minute.
    until(lambda: any(isinstance(found, Retraced) for found in findings(_state(notebook))), every_s=1.0)
    why = until(lambda: "was traced" in (said := _told(notebook, "why")) and said, every_s=3.0)
    assert "`step` (In [4]:1) was traced" in why.replace("\n", " "), why
    assert "-- /" not in why, "a kernel's command is Jupyter's to start"
    holders = until(
        lambda: "In [" in (said := _trained_and_told(notebook, "holders", "--by", "line")) and said, every_s=1.0
    )
    assert "In [4]:3" in holders, holders
    (hooked,) = (process.hooked for process in _state(notebook).processes.values() if process.hooked)
    assert [asked.line for asked in hooked.requested] == [2]
    assert "/ipykernel_" not in why + holders


def test_the_notebook_is_told_of_its_session(notebook: Notebook) -> None:
    assert "KERNEL" in notebook.run("%load_ext tfmemtop\nprint('KERNEL')")
    said = until(lambda: "rest in use" in (said := notebook.run("%memtop")) and said)
    assert "Its pool on the CPU" in said and "variables" in said
    assert "In [4]:1" in said  # the findings
    loaded = notebook.run(
        "import sys\nprint([name for name in sys.modules if name.startswith(('msgspec', 'textual'))])"
    )
    assert loaded == "[]\n"
    without = notebook.run("import os\nos.environ.pop('TFMEMTOP_SOCKET') and None\n%memtop")
    assert without.startswith("tfmemtop does not watch this kernel")
