"""Why the hook did not get into a process that has TensorFlow loaded."""

import os
from pathlib import Path

from tfmemtop.engine.procfs import read_command, read_environment

_WITH_ARGUMENT = "WX"
_SHUTTING = {
    "I": "Python was started with -I, which ignores PYTHONPATH",
    "E": "Python was started with -E, which ignores PYTHONPATH",
    "S": "Python was started with -S, which skips sitecustomize",
}


def has_tensorflow(pid: int) -> bool:
    """Whether TensorFlow's library is mapped into a process; False if that cannot be read."""
    try:
        with Path(f"/proc/{pid}/maps").open("rb") as maps:
            return any(b"libtensorflow_framework" in line or b"_pywrap_tensorflow" in line for line in maps)
    except OSError:
        return False


def reason(pid: int, inject: Path) -> str:
    """One clause for the user; *inject* is the hook's folder."""
    command = read_command(pid)
    try:
        executable = os.readlink(f"/proc/{pid}/exe")  # noqa: PTH115 (a link that may point to no path)
        environment = read_environment(pid)
    except OSError:
        return "the process cannot be looked into"
    if not Path(executable).name.startswith(("python", "pypy")):
        return f"it runs in {Path(executable).name}, which loads no sitecustomize"
    if flag := shutting_flag(command):
        return _SHUTTING[flag]
    if str(inject) not in environment.get("PYTHONPATH", "").split(os.pathsep):
        return "its environment was cleaned: PYTHONPATH no longer leads to the hook"
    return "the hook did not report, and from outside it cannot be seen why"


def flag_reason(flag: str) -> str:
    """One clause for the user on what :func:`shutting_flag` found."""
    return _SHUTTING[flag]


def shutting_flag(command: list[str]) -> str | None:
    """The option of Python's own that keeps the hook out: I, E or S, also combined as in ``-Is``."""
    words = iter(command[1:])
    for word in words:
        if word == "--check-hash-based-pycs":
            next(words, None)
            continue
        if not word.startswith("-") or word in ("-", "--"):
            return None
        if word.startswith("--"):
            continue
        for position, letter in enumerate(word[1:], 1):
            if letter in _SHUTTING:
                return letter
            if letter in "cm":
                return None  # the rest belongs to the program
            if letter in _WITH_ARGUMENT:
                if position == len(word) - 1:
                    next(words, None)
                break
    return None
