"""The user's Python in which kernels will run: whether it can run them, and the kernelspec of its ipykernel."""

import json
import os
import shlex
import shutil
import subprocess
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


class UnfitPython(Exception):
    """No kernel can run in a Python. The message has the reason, and what helps."""


class Python(NamedTuple):
    """A Python with ipykernel: the ``kernel.json`` that its ipykernel would write, and the folder of the logos."""

    kernel: dict[str, Any]
    pictures: Path


def look_at(given: Path | None) -> Python:
    """Run the Python *given*, or else ``python`` or ``python3`` on ``PATH``, and return what its ipykernel reports.

    Raises:
        UnfitPython: there is no such Python, or no kernel can run in it.
    """
    named = str(given) if given is not None else shutil.which("python") or shutil.which("python3")
    if named is None:
        raise UnfitPython("there is no python in PATH; name one: tfmemtop kernel install --python FILE")
    # The link is not resolved: a Python belongs to a virtual environment only if it is started by the link in it.
    path = named if "/" not in named else os.path.abspath(named)  # noqa: PTH100 (which keeps links too, but not "..")
    try:
        asked = subprocess.run([path, "-c", _ASK], capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnfitPython(f"{named} does not run: {getattr(error, 'strerror', None) or error}") from None
    try:
        version, ipykernel = json.loads(asked.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError):
        last = asked.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        raise UnfitPython(f"{named} does not run: {last[0]}") from None
    if tuple(version) < _OLDEST:
        raise UnfitPython(f"{named} is Python {'.'.join(map(str, version))}; tfmemtop watches 3.9 and newer")
    if ipykernel is None:
        raise UnfitPython(f"{named} has no ipykernel; install it: {shlex.quote(named)} -m pip install ipykernel")
    kernel, pictures = ipykernel
    return Python(kernel, Path(pictures))
