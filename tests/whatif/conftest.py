"""One traced training for all tests, and the replay program for the TensorFlow that it ran on."""

from pathlib import Path

import pytest

from tests.probe.conftest import tensorflow, tensorflow_folder
from tests.whatif.traced import Measured, recorder, trace
from tfmemtop.events import Trace
from tfmemtop.probe.build import REPLAY, build
from tfmemtop.whatif.course import Course, course_of

__all__ = ["tensorflow", "tensorflow_folder"]

Traced = tuple[list[Trace], Measured]


@pytest.fixture(scope="session")
def program(tensorflow: tuple[Path, str]) -> Path:
    built = build(*tensorflow, REPLAY)
    assert built.state == "built", built
    return Path(built.path)


@pytest.fixture(scope="session")
def traced(tensorflow_folder: Path, shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Traced:
    folder = tmp_path_factory.mktemp("traced")
    library = recorder(tensorflow_folder, shared)
    return trace([str(Path(__file__).with_name("small.py"))], library, folder)


@pytest.fixture(scope="session")
def course(traced: Traced) -> Course:
    return course_of(traced[0])


@pytest.fixture(scope="session")
def measured(traced: Traced) -> Measured:
    return traced[1]
