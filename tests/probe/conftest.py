"""Fixtures: the probe, built once for all tests against the TensorFlow that their scripts use."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines import engines
from tests.forked import Fork, Forked, Forking
from tests.hooked import PYTHON, bare_tensorflow, environment, monitor, script, tensorflow, tensorflow_folder
from tests.probe.cached import Compiler
from tfmemtop.engine.process.environment import path_with_hook
from tfmemtop.probe.build import build

__all__ = ["engines", "library", "monitor", "script", "tensorflow", "tensorflow_folder"]


@pytest.fixture(scope="session")
def library(tensorflow: tuple[Path, str]) -> Path:
    built = build(*tensorflow)
    assert built.state == "built", built
    return Path(built.path)


@pytest.fixture
def compiler(tmp_path: Path, library: Path) -> Compiler:
    return Compiler(tmp_path, library)


@pytest.fixture(scope="session")
def tensorflow_hooked(shared: Path) -> Iterator[Forking]:
    """A process that has imported TensorFlow with the hook.

    The hook reads at full pace and sends to the monitor of each test.
    """
    hook = {"PYTHONPATH": path_with_hook(""), "TFMEMTOP_SOCKET": "hook.sock", "TFMEMTOP_DATA": "dumps"}
    forking = Forking(shared, "hooked", [PYTHON], environment(None, **hook, TFMEMTOP_INTERVAL="0.01"))
    yield forking
    forking.close()


@pytest.fixture(scope="session")
def tensorflow_bare(shared: Path) -> Iterator[Forking]:
    """A process that has imported TensorFlow without the hook."""
    forking = bare_tensorflow(shared)
    yield forking
    forking.close()


def _starts(forking: Forking, folder: Path) -> Iterator[Fork]:
    started: list[Forked] = []

    def start(source: str, *arguments: str, **variables: str) -> Forked:
        path = folder / "train.py"
        path.write_text(source)
        started.append(forking.start(str(path), *arguments, folder=folder, **variables))
        return started[-1]

    yield start
    for each in started:
        each.close()


@pytest.fixture
def forked(tensorflow_hooked: Forking, tmp_path: Path) -> Iterator[Fork]:
    """Return a function that starts scripts with TensorFlow and the hook already imported.

    Their monitor is the fixture ``monitor``. Windows and maps are written to ``dumps`` in the test's folder, once that
    exists.
    """
    yield from _starts(tensorflow_hooked, tmp_path)


@pytest.fixture
def forked_bare(tensorflow_bare: Forking, tmp_path: Path) -> Iterator[Fork]:
    """Return a function that starts scripts with TensorFlow already imported, without the hook."""
    yield from _starts(tensorflow_bare, tmp_path)
