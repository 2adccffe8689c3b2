"""Build the probe or the replay for this Python's TensorFlow, into the cache: ``python -m tests.building PRODUCT…``.

The build has the priority of its caller. An engine builds at the lowest priority, which may take minutes on a busy
machine.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from tfmemtop.probe.build import ADDRESSES, PROBE, REPLAY, build


def start(cache: Path, *products: str, environment: Mapping[str, str] = os.environ) -> subprocess.Popen[bytes]:
    """Start a process that builds the *products*, which are ``probe``, ``addresses`` or ``replay``, into *cache*.

    The variables in *environment* determine the compiler. Each compiler builds a different probe.
    """
    return subprocess.Popen(
        [sys.executable, "-m", __name__, *products],
        cwd=Path(__file__).parents[1],
        env={**environment, "XDG_CACHE_HOME": str(cache)},
        stdout=subprocess.DEVNULL,
    )


def main(products: list[str]) -> None:
    """Build the *products* one after the other."""
    tensorflow = find_spec("tensorflow")
    assert tensorflow is not None
    for product in (PROBE, ADDRESSES, REPLAY):
        if product.name in products:
            build(Path(str(tensorflow.origin)).parent, product)


if __name__ == "__main__":
    main(sys.argv[1:])
