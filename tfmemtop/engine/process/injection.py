"""How the hook gets into the script, and what it is told there: by environment variables."""

import os
from pathlib import Path

from tfmemtop.engine.process.launch import Launch

INJECT = Path(__file__).parents[2] / "inject"
"""The folder that PYTHONPATH leads Python to."""

ALONE = f"{INJECT}/."
"""The same folder, where the user's PYTHONPATH is empty or not set.

A script may lengthen it: PYTHONPATH=$PYTHONPATH:/x. Without us an empty part is left, which means the working folder.
By this way of writing it the hook knows that, and puts the working folder there.
"""


def mark(hook_socket: Path) -> bytes:
    """The entry in the environment of the script and of all that it starts, unless it clears that."""
    return b"TFMEMTOP_SOCKET=" + os.fsencode(hook_socket)


def dumps_folder(hook_socket: Path) -> Path:
    """Where TensorFlow writes the map of a pool that ran out of memory."""
    return hook_socket.with_name("dumps")


def xla_folder(hook_socket: Path) -> Path:
    """Where XLA writes its reports, if it is asked for them."""
    return hook_socket.with_name("xla")


def path_with_hook(users: str) -> str:
    """The PYTHONPATH that brings the hook in. *users* stays as it is: an empty part in it means the working folder."""
    return f"{INJECT}{os.pathsep}{users}" if users not in ("", ALONE) else ALONE


def with_hook(environment: dict[str, str], launch: Launch, hook_socket: Path, *, trace: bool = False) -> dict[str, str]:
    """*environment* with what brings the hook in.

    With *trace* all allocations of this run are recorded, as ``launch.trace`` has it for all runs.
    """
    hooked = environment | {"PYTHONPATH": path_with_hook(environment.get("PYTHONPATH", ""))}
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
