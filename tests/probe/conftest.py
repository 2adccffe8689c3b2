"""The probe, built once for all tests against the TensorFlow that their scripts use."""

import subprocess
from pathlib import Path

import pytest

from tests.agent.conftest import PYTHON, monitor, script
from tests.engine.conftest import engines
from tests.probe.cached import Compiler
from tfmemtop.probe.build import build

__all__ = ["engines", "library", "monitor", "script", "tensorflow", "tensorflow_folder"]


@pytest.fixture(scope="session")
def tensorflow() -> tuple[Path, str]:
    """Folder and version of the package, asked of the Python that runs the scripts."""
    program = """
from importlib.metadata import version
from importlib.util import find_spec
print(find_spec("tensorflow").origin)
print(version("tensorflow"))
"""
    done = subprocess.run([PYTHON, "-c", program], capture_output=True, text=True, check=True)
    origin, version = done.stdout.splitlines()
    return Path(origin).parent, version.replace("rc", "-rc")  # as TensorFlow itself spells it


@pytest.fixture(scope="session")
def tensorflow_folder(tensorflow: tuple[Path, str]) -> Path:
    return tensorflow[0]


@pytest.fixture(scope="session")
def library(tensorflow: tuple[Path, str]) -> Path:
    built = build(*tensorflow)
    assert built.state == "built", built
    return Path(built.path)


@pytest.fixture
def compiler(tmp_path: Path, library: Path) -> Compiler:
    return Compiler(tmp_path, library)
