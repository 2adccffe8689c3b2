"""The probe, built once for all tests against the TensorFlow of this environment."""

import importlib.util
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.engine.conftest import engines
from tests.hook.conftest import monitor, script
from tfmemtop.probe.build import build

__all__ = ["engines", "library", "monitor", "script", "tensorflow_folder"]


@pytest.fixture(scope="session")
def tensorflow_folder() -> Path:
    spec = importlib.util.find_spec("tensorflow")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent


@pytest.fixture(scope="session")
def library(tensorflow_folder: Path) -> Path:
    built = build(tensorflow_folder, version("tensorflow"))
    assert built.state == "built", built
    return Path(built.path)
