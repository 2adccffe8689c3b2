"""The environment variables that bring the hook into the script, and those that the hook reads there."""

import os
from pathlib import Path

from tfmemtop.engine.process.launch import Launch

INJECT = Path(__file__).parents[2] / "inject"
"""The folder that is put into PYTHONPATH."""

ALONE = f"{INJECT}/."
"""The same folder, where the user's PYTHONPATH is empty or not set.

A script may extend the variable: ``PYTHONPATH=$PYTHONPATH:/x``. Without tfmemtop, the result would have an empty part,
which means the working folder. From this spelling, the hook recognizes that case and puts the working folder there.
"""


def mark(hook_socket: Path) -> bytes:
    """Return the entry that is in the environment of the script and of its children, unless the script clears it."""
    return b"TFMEMTOP_SOCKET=" + os.fsencode(hook_socket)


def dumps_folder(hook_socket: Path) -> Path:
    """Return the folder into which TensorFlow writes the map of a pool that ran out of memory."""
    return hook_socket.with_name("dumps")


def xla_folder(hook_socket: Path) -> Path:
    """Return the folder into which XLA writes its reports, if they are requested."""
    return hook_socket.with_name("xla")


def path_with_hook(users: str) -> str:
    """Return the PYTHONPATH that brings the hook in.

    *users* is the user's own and stays as it is, since an empty part in it means the working folder.
    """
    return f"{INJECT}{os.pathsep}{users}" if users not in ("", ALONE) else ALONE


def with_hook(environment: dict[str, str], launch: Launch, hook_socket: Path, *, trace: bool = False) -> dict[str, str]:
    """Return *environment* with the variables that bring the hook in.

    With *trace*, all allocations of this run are recorded. ``launch.trace`` does this for all runs.
    """
    hooked = environment | {"PYTHONPATH": path_with_hook(environment.get("PYTHONPATH", ""))}
    for name in ("TFMEMTOP_NO_PROBE", "TFMEMTOP_TRACE"):
        hooked.pop(name, None)  # may be set by an outer run that this run is part of
    hooked |= told(launch, hook_socket)
    return hooked | {"TFMEMTOP_TRACE": "1"} if trace else hooked


def told(launch: Launch, hook_socket: Path) -> dict[str, str]:
    """Return the variables that the hook reads: where the engine is, and how to take readings."""
    found = {
        "TFMEMTOP_SOCKET": str(hook_socket),
        "TFMEMTOP_DUMPS": str(dumps_folder(hook_socket)),
        "TFMEMTOP_INTERVAL": f"{launch.interval_s:g}",
        "TFMEMTOP_HOLDERS_INTERVAL": f"{launch.holders_interval_s:g}",
    }
    if not launch.probe:
        found["TFMEMTOP_NO_PROBE"] = "1"
    if launch.trace:
        found["TFMEMTOP_TRACE"] = "1"
    return found
