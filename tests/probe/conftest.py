"""Fixtures: the probe, built once for all tests against the TensorFlow that their scripts use."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.forked import Fork, Forked, Forking
from tests.probe.cached import Compiler
from tfmemtop.probe.build import build


@pytest.fixture(scope="session")
def library(tensorflow: tuple[Path, str]) -> Path:
    built = build(tensorflow[0])
    assert built.state == "built", built
    return Path(built.path)


@pytest.fixture
def compiler(tmp_path: Path, library: Path) -> Compiler:
    return Compiler(tmp_path, library)


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
    """Return a function that starts scripts with TensorFlow and the hook already imported."""
    yield from _starts(tensorflow_hooked, tmp_path)


@pytest.fixture
def forked_bare(tensorflow_bare: Forking, tmp_path: Path) -> Iterator[Fork]:
    """Return a function that starts scripts with TensorFlow already imported, without the hook."""
    yield from _starts(tensorflow_bare, tmp_path)
