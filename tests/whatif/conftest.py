"""One traced training for all tests, and the replay program for the TensorFlow that it ran on."""

from pathlib import Path

import pytest

from tests.hooked import tensorflow, tensorflow_folder
from tests.once import once
from tests.whatif.traced import EVENTS, Measured, recorder, told, trace
from tfmemtop.events import Trace
from tfmemtop.experiments.whatif.course import Course, course_of
from tfmemtop.probe.build import REPLAY, build

__all__ = ["tensorflow", "tensorflow_folder"]

Traced = tuple[list[Trace], Measured]


@pytest.fixture(scope="session")
def program(tensorflow: tuple[Path, str]) -> Path:
    built = build(*tensorflow, REPLAY)
    assert built.state == "built", built
    return Path(built.path)


@pytest.fixture(scope="session")
def traced(tensorflow_folder: Path, shared: Path) -> Traced:
    script = str(Path(__file__).with_name("small.py"))

    def make(into: Path) -> None:
        trace([script], recorder(tensorflow_folder, shared), into)

    folder = once(shared, "traced", make)
    return told((folder / EVENTS).read_text().splitlines())


@pytest.fixture(scope="session")
def course(traced: Traced) -> Course:
    return course_of(traced[0])


@pytest.fixture(scope="session")
def measured(traced: Traced) -> Measured:
    return traced[1]
