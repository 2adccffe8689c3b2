"""Predictions on a GPU and the runs that follow: growth on and off, under five limits around the predicted ones."""

from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.gpu.keep import kept
from tests.gpu.whatif_table import prove
from tests.tools.corpus.whatif import lines
from tfmemtop.probe.build import REPLAY, build

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("built")]


@pytest.mark.parametrize("name", ["keras_cnn", "transformer"])
def test_what_is_predicted_comes_true(name: str, tmp_path: Path) -> None:
    spec = find_spec("tensorflow")
    assert spec is not None and spec.origin is not None
    program = Path(build(Path(spec.origin).parent, version("tensorflow"), REPLAY).path)
    for proof in prove(name, program, kept(tmp_path), narrows=False):
        assert not proof.broken, "\n".join(lines(proof))
