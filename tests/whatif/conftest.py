"""One traced training for all tests, and the replay program for the installed TensorFlow."""

import gzip
from pathlib import Path

import pytest

from tests.whatif.traced import Measured, told
from tfmemtop.events import Trace
from tfmemtop.experiments.whatif.course import Course, course_of
from tfmemtop.probe.build import REPLAY, build

RECORDED = Path(__file__).parents[1] / "recordings" / "small-trace.txt.gz"

Traced = tuple[list[Trace], Measured]


@pytest.fixture(scope="session")
def program(tensorflow: tuple[Path, str]) -> Path:
    built = build(tensorflow[0], REPLAY)
    assert built.state == "built", built
    return Path(built.path)


@pytest.fixture(scope="session")
def traced() -> Traced:
    """Return what TensorFlow 2.21 itself recorded of a training whose batches grow."""
    return told(gzip.decompress(RECORDED.read_bytes()).decode().splitlines())


@pytest.fixture(scope="session")
def course(traced: Traced) -> Course:
    return course_of(traced[0])


@pytest.fixture(scope="session")
def measured(traced: Traced) -> Measured:
    return traced[1]
