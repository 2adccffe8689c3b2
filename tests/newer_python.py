"""A Python in which other processes can run code (3.14 or newer), for tests of the hook in a running process."""

import functools
import json
import os
import shutil
import subprocess
from typing import Any

import pytest

NAMES = ("python3.14", "python3.15")
VARIABLE = "TFMEMTOP_TEST_PYTHON"
"""The variable that names such a Python if none is in PATH. Tests with TensorFlow need a Python that has it."""

PROGRAM = """
import json, os, sys
print(json.dumps("ready"), flush=True)
for line in sys.stdin:
    try:
        found = eval(line)
    except SyntaxError:
        found = exec(line)
    print(json.dumps(found), flush=True)
"""


@functools.cache
def found() -> str | None:
    """Return the path of a Python 3.14 or newer; ``None`` if there is none."""
    named = os.environ.get(VARIABLE)
    return named or next((path for name in NAMES if (path := shutil.which(name))), None)


@functools.cache
def has_tensorflow() -> bool:
    """Return whether that Python exists and has TensorFlow."""
    look = "import importlib.util, sys; sys.exit(importlib.util.find_spec('tensorflow') is None)"
    return found() is not None and subprocess.run([str(found()), "-c", look], check=False).returncode == 0


needs_it = pytest.mark.skipif(found() is None, reason=f"no Python 3.14 in PATH or in {VARIABLE}")


class Obeying:
    """A process of Python 3.14 or newer with ``PROGRAM``: it runs each line of its input, and writes the value as JSON.

    Between two lines it is blocked in a call that reads its input. The hook starts only after that call.
    """

    def __init__(self, *options: str, python: str | None = None, **environment: str) -> None:
        pipe = subprocess.PIPE
        program = [python or str(found()), *options, "-u", "-c", PROGRAM]
        known = {name: value for name, value in os.environ.items() if not name.startswith("TFMEMTOP_")}
        environment = known | {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""} | environment
        self.process = subprocess.Popen(program, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment)
        self.pid = self.process.pid
        self._answer()

    def do(self, what: str) -> Any:
        """Send *what*, and return its value; ``None`` for a statement."""
        assert self.process.stdin is not None
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()
        return self._answer()

    def end(self) -> tuple[int, str]:
        """Close the input of the process, wait for its end, and return its exit code and its output on stderr."""
        _, said = self.process.communicate()
        return self.process.returncode, said

    def close(self) -> None:
        """Kill the process if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()

    def _answer(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"it has ended: {self.end()}"
        return json.loads(line)
