"""The first picture shows the same figures that the engine reads."""

import pytest

from tfmemtop.engine.sources.nvml import Nvml
from tfmemtop.first.cards import read_cards

pytestmark = pytest.mark.gpu


def test_on_a_gpu_its_figures_are_those_of_the_engine() -> None:
    found, reading = read_cards(), Nvml().read()
    assert [(one.name, one.total) for one in found] == [(one.name, one.total) for one in reading.devices]
    for one, other in zip(found, reading.readings, strict=True):
        assert other.used is not None and abs(one.used - other.used) < 1 << 30
        assert set(one.processes) == {process.pid for process in other.processes}
