"""``tfmemtop fit`` on a GPU: the limit and growth together, and the card's memory free again between tries."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gpu.recorded import MIB, PROGRAM

HOLD = str(Path(__file__).parents[1] / "scripts" / "seeds" / "hold_memory.py")


@pytest.mark.parametrize("growth", ["on", "off"])
def test_the_need_of_a_script_on_a_gpu_is_found(growth: str) -> None:
    options = ["--gpus", "0", "--growth", growth, "--seconds", "5", "--tries", "4", "--json"]
    done = subprocess.run(
        [*PROGRAM, "fit", *options, "--", sys.executable, HOLD, "1000", "3000", "60"],
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    first = found["tries"][0]
    assert first["limit"] is None
    assert 3000 * MIB <= first["peak_in_use"] <= 6000 * MIB
    assert 3000 * MIB <= found["limit"] <= 6100 * MIB
    # With growth off a pool is as large as its limit; with growth on it is not larger than was needed.
    assert all(one["pool"] <= one["limit"] for one in found["tries"][1:])
    assert (first["pool"] > 20_000 * MIB) == (growth == "off")
