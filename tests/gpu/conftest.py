"""Fixtures that the tests on a GPU share."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from tfmemtop.probe.build import ADDRESSES, PROBE, REPLAY, Product, build
from tfmemtop.probe.cache import Built


def build_probe(product: Product = PROBE) -> Built:
    """Build the probe, or another product, for the installed TensorFlow."""
    spec = find_spec("tensorflow")
    assert spec is not None and spec.origin is not None
    made = build(Path(spec.origin).parent, product)
    assert made.state == "built", made
    return made


@pytest.fixture(scope="session")
def built() -> None:
    """Build all products before the script begins, so that it need not wait for them."""
    for product in (PROBE, ADDRESSES, REPLAY):
        build_probe(product)
