"""The names of runs and processes for people."""

import re
from collections.abc import Sequence
from pathlib import PurePath

from tfmemtop.state.model import ProcessState, RunState

_PYTHON = re.compile(r"(python|pypy)[0-9.]*(-dbg|d|t|w)?(\.exe)?")
_MODULE_OR_CODE = re.compile(r"-[bBdEiIOPqRsSuvx]*([mc])(.*)", re.DOTALL)
_KERNEL = "ipykernel_launcher"
_WITH_A_VALUE = ("-W", "-X", "--check-hash-based-pycs")
"""Options of Python whose value is the next word."""


def title(run: RunState) -> str:
    """Return the name of *run*: the notebook of a Jupyter kernel, where it is known, else its :func:`program`."""
    return run.notebook or " ".join(program(run.argv))


_ENOUGH = 60  # characters of a command line by which it is recognised


def short(command: str) -> str:
    """Return *command* in one line, cut off where it is longer than is needed to recognise it."""
    text = " ".join(command.split())
    return text if len(text) <= _ENOUGH else text[:_ENOUGH].rstrip() + " …"


def lasting(run: RunState) -> tuple[str, ...]:
    """Return the command line of *run*, without the connection file of a kernel, which may be new with each start."""
    return tuple(word for word in run.argv if run.kernel is None or PurePath(run.kernel).name not in word)


def command_and_program(process: ProcessState) -> tuple[str, str]:
    """Return the command line of *process*, and the part that :func:`program` keeps.

    They are computed once for each value of ``process.seen``.
    """
    seen = process.seen
    if process.words is None or process.words[0] is not seen:
        process.words = seen, " ".join(seen.command), " ".join(program(seen.command))
    return process.words[1:]


def program(command: Sequence[str]) -> list[str]:
    """Return *command* without the folders of its program, and without the Python that runs a script.

    ``/opt/venv/bin/python3 -u /home/ada/train.py 8`` becomes ``train.py 8``, and ``python -m pkg`` becomes ``-m pkg``.
    A Jupyter kernel is identified by its connection file: ``ipykernel_launcher kernel-81fe``. A Python that runs no
    script keeps its own name.
    """
    if not command:
        return []
    first, *rest = command
    name = _last(first)
    if not _PYTHON.fullmatch(name):
        return [name, *rest]
    at = 0
    while at < len(rest):
        word = rest[at]
        if found := _MODULE_OR_CODE.fullmatch(word):
            kind, joined = found.groups()
            words = [*([joined] if joined else []), *rest[at + 1 :]]
            if kind == "m" and words[:1] == [_KERNEL]:
                return [_KERNEL, *(_last(word).removesuffix(".json") for word in words if word.endswith(".json"))]
            return [f"-{kind}", *words]
        if word == "-":
            return [name, *rest]
        if not word.startswith("-"):
            return [_last(word), *rest[at + 1 :]]
        at += 2 if word in _WITH_A_VALUE else 1
    return [name, *rest]


def _last(path: str) -> str:
    """Return the last part of *path*, or *path* itself if it has no parts."""
    return path.rstrip("/").rpartition("/")[2] or path
