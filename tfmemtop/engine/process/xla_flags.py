"""How XLA is asked for its reports: by ``XLA_FLAGS``, beside the user's own flags, which stay as they are."""

import re
from pathlib import Path
from typing import NamedTuple

from tfmemtop.events import XlaMissing

FLAGS, FOLDER = "XLA_FLAGS", "TFMEMTOP_XLA"
ANY_PROCESS = "0"
"""The folder for processes in which the hook is not; in the others it puts the process's number there."""

_MOST_MODULES = 1000  # if the engine ends first, what XLA writes is not removed
_PLAIN = re.compile(r"[\w./+=:,@%-]+")
_DUMPING = re.compile(r"(?:^|\s)(--?xla_dump_\S*)")


class Refused(NamedTuple):
    """Why XLA is not asked. ``detail`` are the user's flags that are in the way."""

    why: XlaMissing
    detail: str


def with_report(environment: dict[str, str], folder: Path) -> "dict[str, str] | Refused":
    """*environment* in which XLA writes its reports to *folder*.

    All versions of XLA since TensorFlow 2.4 know these flags; one that is not known would abort the process. XLA takes
    ``XLA_FLAGS`` for the name of a file unless it begins with a dash.
    """
    users = environment.get(FLAGS, "")
    if users.strip() and not users.lstrip().startswith("-"):
        return Refused(XlaMissing.USERS_FILE, users.strip())
    if found := _DUMPING.findall(users):
        # Even without a folder: they would then be about our files, and no longer about what the user reads.
        return Refused(XlaMissing.USERS_FOLDER, " ".join(found))
    path = f"{folder}/{ANY_PROCESS}"
    if not _PLAIN.fullmatch(path):
        if "'" in path:
            return Refused(XlaMissing.NO_FOLDER, str(folder))
        path = f"'{path}'"
    ours = f"--xla_dump_to={path} --xla_dump_hlo_as_text --xla_dump_max_hlo_modules={_MOST_MODULES}"
    # Ours first: should the user's end within a quotation, ours are not part of it.
    return environment | {FLAGS: f"{ours} {users}" if users.strip() else ours, FOLDER: str(folder)}
