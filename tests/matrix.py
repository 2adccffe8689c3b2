"""The hook's and the probe's tests against every pair of Python and TensorFlow that is supported; prints a table.

Run by hand, where uv is installed: ``python tests/matrix.py [PYTHON:TENSORFLOW …] [TESTS …]``. Each pair gets a virtual
environment that is deleted again. The tests themselves run in the Python that runs this script.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

PAIRS = (
    *("3.9:2.16", "3.9:2.20", "3.10:2.17", "3.11:2.16", "3.11:2.17", "3.11:2.18", "3.11:2.19", "3.11:2.20"),
    *("3.12:2.16", "3.12:2.18", "3.12:2.19", "3.13:2.20", "3.10:2.21", "3.13:2.21"),
    *("3.10:2.22", "3.11:2.22", "3.12:2.22", "3.13:2.22", "3.14:2.22"),
)

TESTS = ("tests/agent", "tests/probe/test_inside.py", "tests/probe/test_trust.py")


def attempt(python: str, tensorflow: str, tests: Sequence[str]) -> str:
    """Return the last line of the tests' report and the failed tests, or why the pair could not be installed."""
    with tempfile.TemporaryDirectory(prefix="tfmemtop-matrix-") as folder:
        for command in (
            ["uv", "venv", "-q", "--python", python, folder, "--clear"],
            ["uv", "pip", "install", "-q", "--python", folder, f"tensorflow=={tensorflow}.*,>={tensorflow}rc0"],
        ):
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                return f"not installed: {done.stderr.strip().splitlines()[-1]}"
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-o", "addopts=", "-q", *tests, "-p", "no:cacheprovider"],
            cwd=Path(__file__).parents[1],
            env={**os.environ, "TFMEMTOP_TEST_PYTHON": str(Path(folder, "bin", "python"))},
            capture_output=True,
            text=True,
        )
        failed = re.findall(r"^(?:FAILED|ERROR) .*", done.stdout, re.MULTILINE)
        return "; ".join([done.stdout.strip().splitlines()[-1], *failed])


def main() -> int:
    """Try the pairs named on the command line, or all. Return 1 if one of them fails."""
    bad = False
    tests = [word for word in sys.argv[1:] if ":" not in word] or TESTS
    for pair in [word for word in sys.argv[1:] if ":" in word] or PAIRS:
        python, _, tensorflow = pair.partition(":")
        result = attempt(python, tensorflow, tests)
        bad |= "failed" in result or "error" in result or "not installed" in result
        print(f"Python {python:5} TensorFlow {tensorflow:5} {result}", flush=True)
    return int(bad)


if __name__ == "__main__":
    raise SystemExit(main())
