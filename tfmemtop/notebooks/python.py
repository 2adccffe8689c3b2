"""The user's Python in which kernels will run: whether it can run them, and the kernelspec of its ipykernel."""

import json
import os
import shutil
import subprocess
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

_OLDEST = (3, 9)
"""The oldest Python that the hook supports."""
_PATIENCE_S = 60.0
_ASK = """
import json, os, sys
try:
    import ipykernel.kernelspec as kernelspec
    found = [kernelspec.get_kernel_dict(), kernelspec.RESOURCES]
except ImportError:
    found = None
print(json.dumps([list(sys.version_info[:2]), found]))
"""


class Why(Enum):
    """The reason why kernels cannot run in a Python; the comments name the ``detail`` of each."""

    NONE = "none"  # there is no Python
    NOT_RUN = "not_run"  # it does not run; detail: the error message of the Python or the system
    TOO_OLD = "too_old"  # detail: its version
    NO_IPYKERNEL = "no_ipykernel"


class Unfit(Exception):
    """No kernel can run in *python*."""

    def __init__(self, why: Why, python: str = "", detail: str = "") -> None:
        super().__init__(why, python, detail)
        self.why, self.python, self.detail = why, python, detail


class Python(NamedTuple):
    """A Python with ipykernel: the ``kernel.json`` that its ipykernel would write, and the folder of the logos."""

    kernel: dict[str, Any]
    pictures: Path


def look_at(given: Path | None) -> Python:
    """Run the Python *given*, or else ``python`` or ``python3`` on ``PATH``, and return what its ipykernel reports.

    Raises:
        Unfit: there is no such Python, or no kernel can run in it.
    """
    named = str(given) if given is not None else shutil.which("python") or shutil.which("python3")
    if named is None:
        raise Unfit(Why.NONE)
    # The link is not resolved: a Python belongs to a virtual environment only if it is started by the link in it.
    path = named if "/" not in named else os.path.abspath(named)  # noqa: PTH100 (which keeps links too, but not "..")
    try:
        asked = subprocess.run([path, "-c", _ASK], capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unfit(Why.NOT_RUN, named, getattr(error, "strerror", None) or str(error)) from None
    try:
        version, ipykernel = json.loads(asked.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError):
        last = asked.stderr.strip().splitlines()[-1:]
        raise Unfit(Why.NOT_RUN, named, last[0] if last else "") from None
    if tuple(version) < _OLDEST:
        raise Unfit(Why.TOO_OLD, named, ".".join(map(str, version)))
    if ipykernel is None:
        raise Unfit(Why.NO_IPYKERNEL, named)
    kernel, pictures = ipykernel
    return Python(kernel, Path(pictures))
