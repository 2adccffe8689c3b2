"""Fixtures that the tests on a GPU share."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from tfmemtop.probe.build import ADDRESSES, REPLAY, build


@pytest.fixture(scope="session")
def built() -> None:
    """Build the probe and the replay before the script begins, so that it need not wait for them."""
    spec = find_spec("tensorflow")
    assert spec is not None and spec.origin is not None
    folder = Path(spec.origin).parent
    for made in (build(folder), build(folder, ADDRESSES), build(folder, REPLAY)):
        assert made.state == "built", made
