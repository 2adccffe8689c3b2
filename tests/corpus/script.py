"""What a row of the tables says: one small program, how it is started, and what may differ under tfmemtop."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

Stdin = bytes | Literal["null", "closed", "zero", "socket"]
"""Bytes come through a pipe; ``zero`` is /dev/zero."""

Sink = Literal["pipe", "file", "closed", "full", "broken", "null", "same"]
"""``broken`` is a pipe that nobody reads, ``full`` is /dev/full, ``same`` (of stderr) is where stdout goes."""

Aspect = Literal["stdout", "stderr", "code", "processes", "files", "live"]


@dataclass(frozen=True, kw_only=True)
class Script:
    """One program of the corpus. It runs in an empty folder, with the folders of a user who has nothing yet."""

    name: str
    exercises: str
    source: str = ""
    """Python, written to ``script.py``."""
    command: tuple[str, ...] = ("{python}", "script.py")
    """``{python}`` is the interpreter, ``{base}`` the one behind its virtual environment, ``{box}`` the folder."""
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    """More files in the working folder; those whose text begins with ``#!`` are executable."""
    environment: Mapping[str, str | None] = field(default_factory=dict)
    """Added; ``None`` takes a variable away. ``{cwd}`` is the working folder."""
    cwd: str = "cwd"
    stdin: Stdin = "null"
    stdout: Sink = "pipe"
    stderr: Sink = "pipe"
    prepare: Callable[[], None] | None = None
    """Called in the process that is about to become the command, or ``tfmemtop record`` before it."""
    tensorflow: bool = False
    live: bool = False
    """Run under the live screen too, against a bare terminal of the same size."""
    quick: bool = False
    """Part of the short form."""
    filters: tuple[str, ...] = ()
    """Names of FILTERS: what of the output is chance."""
    differs: Mapping[Aspect, str] = field(default_factory=dict)
    """What differs by design, and why."""
    needs: tuple[str, ...] = ()
    """Programs, or modules as ``module:NAME``, without which it is left out."""


def py(name: str, exercises: str, source: str, **rest: object) -> Script:
    """A Python program."""
    return Script(name=name, exercises=exercises, source=source.lstrip("\n"), **rest)  # type: ignore[arg-type]


def sh(name: str, exercises: str, line: str, **rest: object) -> Script:
    """A line of the shell."""
    return Script(name=name, exercises=exercises, command=("sh", "-c", line), **rest)  # type: ignore[arg-type]


def run(name: str, exercises: str, *command: str, **rest: object) -> Script:
    """Any other command."""
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
    # What the README names as ours in the environment, and only that.
    "environment": _substitute(rb"(?m)^TFMEMTOP_[A-Z_]+=.*\n|(?<=^PYTHONPATH=)[^:\r\n]*/tfmemtop/inject[/.]*:?", b""),
    "no-pythonpath": _substitute(rb"(?m)^PYTHONPATH=\r?\n", b""),
    # TensorFlow's log: month and day, time and thread.
    "log": _substitute(rb"(?m)^([IWEF])\d{4} [0-9:.]+ +\d+ ", rb"\1 "),
    # Of Python's warning of a fork in a process with threads, from Python 3.12 on.
    "pids": _substitute(rb"\(pid=\d+\)", b"(pid=N)"),
    # 3.7 s here, 3.9 s there.
    "durations": _substitute(rb"\d+(\.\d+)?(e-?\d+)? ?(ms|us|s)\b", b"T s"),
}
