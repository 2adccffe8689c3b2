"""``%memtop``: prints what tfmemtop has recorded of the notebook's own session."""

import os
import subprocess
import sys
from pathlib import Path

from tfmemtop import boot

_UNWATCHED = (
    "tfmemtop does not watch this kernel. Add one that it watches: tfmemtop kernel install. "
    'Then change the notebook\'s kernel to "Python (tfmemtop)".'
)
_PATIENCE_S = 120.0
_OURS = ("TFMEMTOP_", "PYTHONPATH")


def memtop(line: str) -> None:
    """Print the account of this session's memory and its findings."""
    sys.stdout.write(f"{_answer()}\n")


def _answer() -> str:
    """Return what a process beside the kernel prints: it loads our modules, and folds a recording that may be long."""
    socket = os.environ.get("TFMEMTOP_SOCKET")
    if not socket:
        return _UNWATCHED
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
    command = boot.command("tfmemtop.cli.why", Path(socket).parent.name)
    try:
        done = subprocess.run(
            command,
            env=environment,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_PATIENCE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"tfmemtop gave no answer: {error}"
    answer, complaint = (printed.decode(errors="replace").strip() for printed in (done.stdout, done.stderr))
    return answer or f"tfmemtop gave no answer: {complaint or 'it printed nothing'}"
