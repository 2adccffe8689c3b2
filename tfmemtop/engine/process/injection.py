"""How the hook gets into the script, and what it is told there: by environment variables."""

import os
from pathlib import Path

from tfmemtop.engine.process.launch import Launch

INJECT = Path(__file__).parents[2] / "inject"
"""The folder that PYTHONPATH leads Python to."""


def mark(hook_socket: Path) -> bytes:
    """The entry in the environment of the script and of all that it starts, unless it clears that."""
    return b"TFMEMTOP_SOCKET=" + os.fsencode(hook_socket)


def dumps_folder(hook_socket: Path) -> Path:
    """Where TensorFlow writes the map of a pool that ran out of memory."""
    return hook_socket.with_name("dumps")


def xla_folder(hook_socket: Path) -> Path:
    """Where XLA writes its reports, if it is asked for them."""
    return hook_socket.with_name("xla")


def with_hook(
    environment: dict[str, str], launch: Launch, hook_socket: Path, *, folder_exists: bool, trace: bool = False
) -> dict[str, str]:
    """*environment* with what brings the hook in; *folder_exists* says whether the working folder is still there.

    With *trace* all allocations of this run are recorded, as ``launch.trace`` has it for all runs.
    """
    # The user's PYTHONPATH stays as it is: an empty part in it means the working folder. Where all of it is empty, it
    # means nothing: then the hook removes the separator again, unless a script adds to it (PYTHONPATH=$PYTHONPATH:/x).
    users = environment.get("PYTHONPATH", "")
    # Python does not start with an empty part where the working folder has been removed.
    separator = os.pathsep if users or folder_exists else ""
    hooked = environment | {"PYTHONPATH": f"{INJECT}{separator}{users}"}
    for name in ("TFMEMTOP_NO_PROBE", "TFMEMTOP_TRACE"):
        hooked.pop(name, None)  # set by a run that this one is part of
    hooked |= told(launch, hook_socket)
    return hooked | {"TFMEMTOP_TRACE": "1"} if trace else hooked


def told(launch: Launch, hook_socket: Path) -> dict[str, str]:
    """What the hook is told: where the engine is, and how to read."""
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
