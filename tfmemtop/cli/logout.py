"""Finds out whether a program that is left running ends when the user logs out.

It does if systemd's login manager, logind, is set to end all processes of a session with the session
(``KillUserProcesses`` in logind.conf). An administrator chooses that; it is off in most distributions.
"""

import os
import pwd
import re
import subprocess
from pathlib import Path

import msgspec

_SCOPE = re.compile(r"/session-[^/]*\.scope(/|$)", re.M)
"""In a cgroup's path: the processes of one login, which logind ends together."""
_ASK = (
    *("busctl", "--system", "--json=short", "get-property", "org.freedesktop.login1", "/org/freedesktop/login1"),
    *("org.freedesktop.login1.Manager", "KillUserProcesses", "KillExcludeUsers", "KillOnlyUsers"),
)
_ANSWERS_S = 2.0


class _Flag(msgspec.Struct):
    data: bool


class _Names(msgspec.Struct):
    data: list[str]


def ends_at_logout(cgroup: Path = Path("/proc/self/cgroup")) -> bool:
    """Return whether this process, and all that it has started, are ended when the user logs out.

    *cgroup* is the file with the cgroups of this process. If logind does not answer, the result is false.
    """
    try:
        if not _SCOPE.search(cgroup.read_text()):
            return False
        done = subprocess.run(_ASK, stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=_ANSWERS_S)
        kills = msgspec.json.decode(done.stdout.splitlines()[0], type=_Flag).data
        excluded, only = (msgspec.json.decode(line, type=_Names).data for line in done.stdout.splitlines()[1:])
        return _are_ended(pwd.getpwuid(os.getuid()).pw_name, kills, excluded, only)
    except (OSError, subprocess.SubprocessError, ValueError, IndexError, KeyError):
        return False  # there is no logind, or it gives another answer; or the user is not known


def _are_ended(user: str, kills: bool, excluded: list[str], only: list[str]) -> bool:
    """Return what logind decides for *user*: ``manager_shall_kill()`` in its source."""
    if user in (excluded or ["root"]):
        return False
    return user in only if only else kills
