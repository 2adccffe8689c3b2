"""Finds out why the hook is not in a process that has TensorFlow loaded."""

import os
from pathlib import Path

from tfmemtop.engine.sources.processes import executable, read_command, read_environment
from tfmemtop.events import Absence, HookAbsence

_WITH_ARGUMENT = "WX"
BY_OPTION = {"I": Absence.ISOLATED, "E": Absence.IGNORES_ENVIRONMENT, "S": Absence.NO_SITE}
"""Python's own options that keep the hook out."""


def absence(pid: int, inject: Path, mark: bytes | None = None) -> HookAbsence:
    """Return why the hook is not inside process *pid*.

    *inject* is the hook's folder. *mark* is the entry that this session puts into the environment, as ``NAME=value``.
    """
    command = read_command(pid)
    try:
        program = executable(pid)
        environment = read_environment(pid)
    except OSError:
        return HookAbsence(Absence.UNREADABLE)
    if not _is_python(program):
        return HookAbsence(Absence.OTHER_PROGRAM, _name(program))
    if flag := shutting_flag(command):
        return HookAbsence(BY_OPTION[flag])
    if inject not in map(Path, environment.get("PYTHONPATH", "").split(os.pathsep)):
        return HookAbsence(Absence.ENVIRONMENT_CLEANED)
    variable, _, ours = os.fsdecode(mark or b"").partition("=")
    theirs = environment.get(variable, ours)
    if theirs != ours:
        return HookAbsence(Absence.OTHER_SESSION, session=Path(theirs).parent.name)
    return HookAbsence(Absence.UNEXPLAINED)


def _is_python(program: str) -> bool:
    """Return whether a program's path is that of a Python interpreter."""
    return _name(program).startswith(("python", "pypy"))


def _name(program: str) -> str:
    """Return the file's name. Bytes that are not UTF-8 are replaced."""
    return os.fsencode(os.path.basename(program)).decode(errors="replace")  # noqa: PTH119 (it may be no path)


def shutting_flag(command: list[str]) -> str | None:
    """Return Python's own option that keeps the hook out: I, E or S, also combined as in ``-Is``. ``None`` if none."""
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
            if letter in BY_OPTION:
                return letter
            if letter in "cm":
                return None  # the rest belongs to the program
            if letter in _WITH_ARGUMENT:
                if position == len(word) - 1:
                    next(words, None)
                break
    return None
