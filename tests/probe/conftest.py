"""The probe, built once for all tests against the TensorFlow of this environment."""

import importlib.util
from importlib.metadata import version
from pathlib import Path

import pytest

from tfmemtop.probe.build import build


@pytest.fixture(scope="session")
def tensorflow_folder() -> Path:
    spec = importlib.util.find_spec("tensorflow")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def library(tensorflow_folder: Path, cache: Path) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(cache))
        built = build(tensorflow_folder, version("tensorflow"))
    assert built.state == "built", built
    return Path(built.path)
