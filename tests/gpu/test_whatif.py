"""What is foretold on a GPU and what then comes: growth on and off, under five limits around the ends."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.gpu.keep import kept
from tfmemtop.units import MIB

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("built")]

PROGRAM = [sys.executable, "-m", "tfmemtop"]
SCRIPTS = Path(__file__).parents[1] / "corpus" / "foretold"
NAMES = ("keras_cnn", "transformer")


def recorded(name: str, path: Path, *options: str) -> bool:
    """Whether the script called *name* ends well under *options*."""
    command = [*PROGRAM, "record", "-o", str(path), "--gpus", "0", *options, "--", sys.executable]
    done = subprocess.run([*command, str(SCRIPTS / f"{name}.py")], capture_output=True, text=True, timeout=300)
    return done.returncode == 0


def told(path: Path) -> dict[str, Any]:
    done = subprocess.run([*PROGRAM, "whatif", str(path), "--json"], capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def measured(path: Path) -> dict[str, Any]:
    command = [*PROGRAM, "compare", "--json", f"{path}:1", f"{path}:1"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    run: dict[str, Any] = json.loads(done.stdout)["runs"][0]
    return run


@pytest.mark.parametrize("name", NAMES)
def test_what_is_foretold_comes_true(name: str, tmp_path: Path) -> None:
    folder = kept(tmp_path)
    first = folder / f"whatif-{name}.jsonl"
    assert recorded(name, first, "--growth", "on")
    said, real = told(first), measured(first)
    present = said["rows"][0]
    assert (present["growth"], present["pool"]) == (True, real["peak_pool"])
    # What was allocated before anything was recorded lies in chunks of other sizes: kilobytes of hundreds of megabytes.
    assert abs(present["peak"] - real["peak_in_use"]) <= real["peak_in_use"] // 10_000
    for growth in ("on", "off"):
        ends = said["smallest"][f"growth_{growth}"]
        surely, at_least = ends["surely"] // MIB, ends["at_least"] // MIB
        below = at_least - max(2, at_least // 30)
        for limit in sorted({below, at_least, (at_least + surely) // 2, surely, surely + max(2, surely // 20)}):
            path = folder / f"whatif-{name}-{growth}-{limit}.jsonl"
            passed = recorded(name, path, "--growth", growth, "--memory-limit", f"{limit}M")
            assert passed or limit < surely, f"{name}, growth {growth}: {limit}M failed, surely {surely}M"
            assert not passed or limit >= at_least, f"{name}, growth {growth}: {limit}M passed, at least {at_least}M"
            row = next(
                (row for row in said["rows"] if (row["growth"], row["limit"]) == (growth == "on", limit * MIB)), None
            )
            if passed and row is not None and row["fits"]:
                assert abs(measured(path)["peak_pool"] - row["pool"]) <= 0.02 * row["pool"]
