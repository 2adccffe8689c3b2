"""A row of the tables: one small program, how it is started, and which differences under tfmemtop are allowed."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

Stdin = bytes | Literal["null", "closed", "zero", "socket"]
"""Bytes are sent through a pipe. ``zero`` is /dev/zero."""

Sink = Literal["pipe", "file", "closed", "full", "broken", "null", "same"]
"""``broken`` is a pipe that no process reads, ``full`` is /dev/full, ``same`` (for stderr) is the target of stdout."""

Aspect = Literal["stdout", "stderr", "code", "processes", "files", "live"]


@dataclass(frozen=True, kw_only=True)
class Script:
    """One program of the corpus. It runs in an empty folder, with the folders of a user who has no files yet."""

    name: str
    exercises: str
    source: str = ""
    """Python, written to ``script.py``."""
    command: tuple[str, ...] = ("{python}", "script.py")
    """``{python}`` is the interpreter, ``{base}`` the one behind its virtual environment, ``{box}`` the whole box."""
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    """More files in the working folder. Those that begin with ``#!``, ``:`` or an ELF header are executable."""
    environment: Mapping[str, str | None] = field(default_factory=dict)
    """Variables to add; ``None`` removes a variable. ``{cwd}`` is the working folder."""
    cwd: str = "cwd"
    stdin: Stdin = "null"
    stdout: Sink = "pipe"
    stderr: Sink = "pipe"
    prepare: Callable[[], None] | None = None
    """Called in the process that then becomes the command, or becomes the ``tfmemtop record`` that starts it."""
    tensorflow: bool = False
    live: bool = False
    """Whether to run it under the live screen too, compared with a bare terminal of the same size."""
    quick: bool = False
    """Whether it is part of the short form."""
    filters: tuple[str, ...] = ()
    """Names of FILTERS, which remove what is random in the output."""
    differs: Mapping[Aspect, str] = field(default_factory=dict)
    """The differences that are by design, with their reasons."""
    needs: tuple[str, ...] = ()
    """Programs, or modules as ``module:NAME``, without which the script is left out."""


def py(name: str, exercises: str, source: str, **rest: object) -> Script:
    """Return a script that is a Python program."""
    return Script(name=name, exercises=exercises, source=source.lstrip("\n"), **rest)  # type: ignore[arg-type]


def sh(name: str, exercises: str, line: str, **rest: object) -> Script:
    """Return a script that is a line of the shell."""
    return Script(name=name, exercises=exercises, command=("sh", "-c", line), **rest)  # type: ignore[arg-type]


def run(name: str, exercises: str, *command: str, **rest: object) -> Script:
    """Return a script that is any other command."""
    return Script(name=name, exercises=exercises, command=command, **rest)  # type: ignore[arg-type]


def _substitute(pattern: bytes, replacement: bytes) -> Callable[[bytes], bytes]:
    compiled = re.compile(pattern)
    return lambda data: compiled.sub(replacement, data)


def _sort_lines(data: bytes) -> bytes:
    return b"".join(sorted(data.splitlines(keepends=True)))


FILTERS: dict[str, Callable[[bytes], bytes]] = {
    "numbers": _substitute(rb"\d+", b"N"),
    "addresses": _substitute(rb"0x[0-9a-fA-F]+", b"0xN"),
    "times": _substitute(rb"\d+\.\d+", b"T"),
    "sorted": _sort_lines,
    # The variables that the README names as ours in the environment, and only those.
    "environment": _substitute(rb"(?m)^TFMEMTOP_[A-Z_]+=.*\n|(?<=^PYTHONPATH=)[^:\r\n]*/tfmemtop/inject[/.]*:?", b""),
    "no-pythonpath": _substitute(rb"(?m)^PYTHONPATH=\r?\n", b""),
    # The parts of TensorFlow's log that differ: month and day, time and thread.
    "log": _substitute(rb"(?m)^([IWEF])\d{4} [0-9:.]+ +\d+ ", rb"\1 "),
    # In Python's warning about a fork in a process with threads, from Python 3.12 on.
    "pids": _substitute(rb"\(pid=\d+\)", b"(pid=N)"),
    # Such as 3.7 s in one run and 3.9 s in another.
    "durations": _substitute(rb"\d+(\.\d+)?(e-?\d+)? ?(ms|us|s)\b", b"T s"),
}
