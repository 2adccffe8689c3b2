"""Requests reports from XLA through ``XLA_FLAGS``. The user's own flags stay there as they are."""

import re
from pathlib import Path
from typing import NamedTuple

from tfmemtop.events import XlaMissing

FLAGS, FOLDER = "XLA_FLAGS", "TFMEMTOP_XLA"
ANY_PROCESS = "0"
"""The subfolder for processes without the hook. In other processes, the hook puts the process's number in its place."""

_MOST_MODULES = 1000  # if the engine ends first, what XLA writes is not removed
_PLAIN = re.compile(r"[\w./+=:,@%-]+")
_DUMPING = re.compile(r"(?:^|\s)(--?xla_dump_\S*)")


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
