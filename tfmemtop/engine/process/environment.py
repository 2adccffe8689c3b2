"""The variables in the script's environment: they bring the hook in, tell it how to read, and request XLA's reports."""

import os
import re
from pathlib import Path
from typing import NamedTuple

from tfmemtop.engine.process.launch import Launch
from tfmemtop.events import XlaMissing

INJECT = Path(__file__).parents[2] / "inject"
"""The folder that is put into PYTHONPATH."""

ALONE = f"{INJECT}/."
"""The same folder, where the user's PYTHONPATH is empty or not set.

A script may extend the variable: ``PYTHONPATH=$PYTHONPATH:/x``. Without tfmemtop, the result would have an empty part,
which means the working folder. From this spelling, the hook recognizes that case and puts the working folder there.
"""

FLAGS, FOLDER = "XLA_FLAGS", "TFMEMTOP_XLA"
ANY_PROCESS = "0"
"""The subfolder for processes without the hook. In other processes, the hook puts the process's number in its place."""

_MOST_MODULES = 1000  # if the engine ends first, what XLA writes is not removed
_PLAIN = re.compile(r"[\w./+=:,@%-]+")
_DUMPING = re.compile(r"(?:^|\s)(--?xla_dump_\S*)")


def mark(hook_socket: Path) -> bytes:
    """Return the entry that is in the environment of the script and of its children, unless the script clears it."""
    return b"TFMEMTOP_SOCKET=" + os.fsencode(hook_socket)


def data_folder(hook_socket: Path) -> Path:
    """Return the folder into which TensorFlow writes the map of a pool that ran out of memory."""
    return hook_socket.with_name("data")


def xla_folder(hook_socket: Path) -> Path:
    """Return the folder into which XLA writes its reports, if they are requested."""
    return hook_socket.with_name("xla")


def path_with_hook(users: str) -> str:
    """Return the PYTHONPATH that brings the hook in.

    *users* is the user's own and stays as it is, since an empty part in it means the working folder.
    """
    return f"{INJECT}{os.pathsep}{users}" if users not in ("", ALONE) else ALONE


def with_hook(environment: dict[str, str], launch: Launch, hook_socket: Path) -> dict[str, str]:
    """Return *environment* with the variables that bring the hook in."""
    hooked = environment | {"PYTHONPATH": path_with_hook(environment.get("PYTHONPATH", ""))}
    hooked.pop("TFMEMTOP_NO_PROBE", None)  # may be set by an outer run that this run is part of
    return hooked | hook_variables(launch, hook_socket)


def hook_variables(launch: Launch, hook_socket: Path) -> dict[str, str]:
    """Return the variables that the hook reads: where the engine is, and how to take readings."""
    found = {
        "TFMEMTOP_SOCKET": str(hook_socket),
        "TFMEMTOP_DATA": str(data_folder(hook_socket)),
        "TFMEMTOP_INTERVAL": f"{launch.interval_s:g}",
        "TFMEMTOP_HOLDERS_INTERVAL": f"{launch.holders_interval_s:g}",
    }
    if not launch.probe:
        found["TFMEMTOP_NO_PROBE"] = "1"
    return found


class Refused(NamedTuple):
    """Why no reports are requested from XLA. ``detail`` are the user's flags that prevent it."""

    why: XlaMissing
    detail: str


def with_report(environment: dict[str, str], folder: Path) -> "dict[str, str] | Refused":
    """Return *environment* with flags that make XLA write its reports to *folder*, or why that is not possible.

    All versions of XLA since TensorFlow 2.4 support these flags. An unknown flag would abort the process. XLA takes
    ``XLA_FLAGS`` for the name of a file unless it begins with a dash.
    """
    users = environment.get(FLAGS, "")
    if users.strip() and not users.lstrip().startswith("-"):
        return Refused(XlaMissing.USERS_FILE, users.strip())
    if found := _DUMPING.findall(users):
        # Also if they name no folder: they would then apply to our files, and no longer to what the user reads.
        return Refused(XlaMissing.USERS_FOLDER, " ".join(found))
    path = f"{folder}/{ANY_PROCESS}"
    if not _PLAIN.fullmatch(path):
        if "'" in path:
            return Refused(XlaMissing.NO_FOLDER, str(folder))
        path = f"'{path}'"
    ours = f"--xla_dump_to={path} --xla_dump_hlo_as_text --xla_dump_max_hlo_modules={_MOST_MODULES}"
    # Our flags come first: if the user's flags have a quotation without an end, ours are not part of it.
    return environment | {FLAGS: f"{ours} {users}" if users.strip() else ours, FOLDER: str(folder)}
