"""Do suggested limits hold? ``python -m tests.tools.corpus.limits [--times 3] [--gpu] [NAME…]``.

Each script in :mod:`.limited` runs with a pool of 4 GiB. ``tfmemtop why`` suggests a limit after it, and the
script runs again under that limit. Scripts that allocate randomly run several times, and then as often under the
smallest limit that was suggested. Without a GPU TensorFlow's BFC allocator manages the CPU's memory; there pools
always grow. With ``--gpu`` each script is run with growth on and with growth off.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.tools.corpus.limited import BY_CHANCE, COMMANDS
from tfmemtop.units import MIB, format_short

TFMEMTOP = str(Path(sys.executable).with_name("tfmemtop"))

_LONGEST_S = 600.0
_HEADINGS = ("script", "growth", "peak", "pool", "suggested", "basis", "result")


@dataclass(frozen=True, slots=True)
class UnderLimit:
    """A script under the limit that was suggested after its first run. Sizes are in bytes.

    ``failed`` counts the runs, of ``times``, that did not end well.
    """

    name: str
    growth: str
    peak: int
    pool: int
    suggested: int | None
    basis: str
    times: int = 0
    failed: int = 0

    @property
    def holds(self) -> bool:
        """Whether every run ended well, or the limit was called a guess."""
        return self.suggested is not None and (not self.failed or "guess" in self.basis)

    @property
    def row(self) -> tuple[str, ...]:
        result = "nothing suggested"
        if self.suggested is not None:
            result = f"passed {self.times - self.failed} of {self.times}"
        sizes = (format_short(self.peak), format_short(self.pool), format_short(self.suggested))
        return self.name, self.growth, *sizes, self.basis, result


def attempt(name: str, folder: Path, times: int = 1, growth: str | None = None) -> UnderLimit:
    """Run the script called *name* *times*, and as often under the smallest of the limits that are suggested after it.

    Recordings go to *folder*. *growth* is on or off on a GPU, ``None`` for the CPU's pool.

    Raises:
        RuntimeError: the script does not end well without a limit.
    """
    least = min((_first(name, folder, index, growth) for index in range(times)), key=lambda held: held.suggested or 0)
    if least.suggested is None:
        return least
    option = "--cpu-pool" if growth is None else "--memory-limit"
    under = [*([] if growth is None else ["--growth", growth]), option, f"{least.suggested // MIB}M"]
    failed = sum(not _runs(under, name, folder / f"{name}-{growth}-again-{index}.jsonl") for index in range(times))
    return replace(least, times=times, failed=failed)


def _first(name: str, folder: Path, index: int, growth: str | None) -> UnderLimit:
    path = folder / f"{name}-{growth}-{index}.jsonl"
    whole = ["--cpu-pool", "4G"] if growth is None else ["--growth", growth]
    if not _runs(whole, name, path):
        raise RuntimeError(f"{name} does not end well without a limit")
    limit = _json("why", "--json", str(path))["limit"]
    held = UnderLimit(name, growth or "", *_figures(path), None, "")
    if limit is None:
        return held
    assert limit["bytes"] % MIB == 0 and limit["growth"] == growth, limit
    return replace(held, suggested=limit["bytes"], basis=limit["basis"])


def _runs(options: list[str], name: str, path: Path) -> bool:
    command = [TFMEMTOP, "record", "-o", str(path), *options, "--", *COMMANDS[name]]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_LONGEST_S)
    return done.returncode == 0 and done.stdout.rstrip().lower().rstrip(".").endswith("done")


def _json(*arguments: str) -> Any:
    done = subprocess.run([TFMEMTOP, *arguments], capture_output=True, text=True, check=True, timeout=_LONGEST_S)
    return json.loads(done.stdout)


def _figures(path: Path) -> tuple[int, int]:
    """Return the peak in use and the largest pool, of the allocator that had most."""
    run = _json("compare", "--json", f"{path}:1", f"{path}:1")["runs"][0]
    return run["peak_in_use"], run["peak_pool"]


def main() -> int:
    """Run the scripts, and print a line for each. Return 1 if a limit that is not called a guess did not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", metavar="NAME", nargs="*", help=f"of: {', '.join(COMMANDS)}")
    parser.add_argument("--times", type=int, default=3, help="how often those run that allocate by chance")
    parser.add_argument("--gpu", action="store_true", help="on the GPU, with growth on and off")
    arguments = parser.parse_args()
    broken = 0
    print("{:12}{:8}{:>8}{:>8}{:>11}  {:26}{}".format(*_HEADINGS), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.names or COMMANDS:
            for growth in ("on", "off") if arguments.gpu else (None,):
                held = attempt(name, Path(folder), arguments.times if name in BY_CHANCE else 1, growth)
                print("{:12}{:8}{:>8}{:>8}{:>11}  {:26}{}".format(*held.row), flush=True)
                broken += not held.holds
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
