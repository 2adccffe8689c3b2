"""Finds the Python that a command would start, and starts that Python to examine it. The command is never run."""

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from getopt import GetoptError, getopt
from itertools import takewhile
from pathlib import Path
from typing import Any

from tfmemtop.engine.process.launch import path_with_hook

_PYTHON = re.compile(r"(?:python|pypy)[\d.]*(?:-dbg|t|d)?")
_KEPT = "IESsP"  # Python's options that change which modules it finds at its start
_PYTHONS_OPTIONS = "bBdEhiIOPqRsStuvVx?c:m:W:X:"  # a colon follows those with a value
_DEEPEST = 8  # how many interpreters may follow one another: a script may be the interpreter of another script
_FIRST_LINE = 4096  # bytes
_ANSWERS_S = 10.0
_MARK = "tfmemtop doctor: "
_HOOK_UNKNOWN = "so it is unknown whether the hook gets into a Python that it starts"
_SHALL_START = "see that the command's Python starts"

_DISTRIBUTIONS = (
    *("tensorflow", "tensorflow-cpu", "tf-nightly", "tf-nightly-cpu"),
    *("tensorflow-intel", "intel-tensorflow", "tensorflow-rocm", "tensorflow-aarch64"),
)

# This code runs in the user's interpreter, of any version. It imports nothing from the working folder.
_ASK = f"""
import sys
sys.path[:] = [part for part in sys.path if part]
found = {{"version": sys.version.split()[0], "executable": sys.executable,
          "hook": "_Arrival" in [type(finder).__name__ for finder in sys.meta_path]}}
try:
    from importlib.util import find_spec
    spec = find_spec("tensorflow")
    found["folder"] = list(spec.submodule_search_locations or [])[0] if spec else None
    from importlib import metadata
    for name in {_DISTRIBUTIONS!r}:
        try:
            found["tensorflow"] = metadata.version(name)
            break
        except metadata.PackageNotFoundError:
            pass
except Exception as error:
    found["error"] = "%s: %s" % (type(error).__name__, error)
import json
print("\\n{_MARK}" + json.dumps(found))
"""


@dataclass(frozen=True)
class Start:
    """How a command's Python is started: the *words* of the command line before the program, and the *environment*."""

    words: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True)
class Unclear:
    """The reason why nothing is known about a command's Python, and what helps.

    ``missing``: the command cannot start anything, or its Python does not work.
    """

    text: str
    remedy: str = ""
    missing: bool = False


@dataclass(frozen=True)
class Interpreter:
    """What a Python reports about itself.

    ``hook``: it has loaded the hook. ``tensorflow`` is the version of its TensorFlow, and ``folder`` is TensorFlow's
    folder. ``flags`` are the options with which the Python was started.
    """

    version: str
    executable: str
    hook: bool
    tensorflow: str | None
    folder: str | None
    flags: tuple[str, ...] = ()
    error: str = ""


def resolve(command: Sequence[str], environment: Mapping[str, str], cwd: Path, depth: int = 0) -> Start | Unclear:
    """Return the Python that *command* starts, or the reason why it cannot be found.

    *command* is resolved as a shell and the kernel do it: ``PATH``, then ``#!`` lines; also ``env`` and
    ``uv run FILE.py``. *depth* counts the interpreters up to here.
    """
    name = command[0]
    path = shutil.which(name, path=environment.get("PATH", os.defpath)) if "/" not in name else str(cwd / name)
    if path is None or not Path(path).exists():
        return Unclear(f"{name}: command not found", "check its spelling and PATH", missing=True)
    if not os.access(path, os.X_OK) or Path(path).is_dir():
        return Unclear(f"{name}: cannot be executed", "chmod +x, or name its interpreter", missing=True)
    base = Path(name).name
    rest = list(command[1:])
    if _PYTHON.fullmatch(base):
        return Start((path, *_flags(rest)), environment)
    if depth >= _DEEPEST:
        return Unclear(f"{name}: its #! lines form a loop")
    if base == "env":
        return _of_env(rest, environment, cwd, depth)
    if base == "uv" and rest[:1] == ["run"] and rest[1:] and rest[1].endswith(".py"):
        # --no-sync uses the environment as it is: a check must not install anything.
        return Start((path, "run", "--no-sync", "python"), environment)
    line = _first_line(Path(path))
    if line is None:
        return Unclear(f"{name} is not a Python, {_HOOK_UNKNOWN}")
    interpreter, _, argument = line.partition(" ")
    words = [interpreter, *([argument.strip()] if argument.strip() else []), path, *rest]
    if Path(interpreter).name == "env" and argument.strip().startswith("-S"):
        words = [interpreter, *argument.strip()[2:].split(), path, *rest]
    found = resolve(words, environment, cwd, depth + 1)
    if isinstance(found, Unclear) and not found.missing:
        return Unclear(f"{name} is run by {interpreter}, {_HOOK_UNKNOWN}")
    return found


def ask(start: Start, cwd: Path, timeout_s: float = _ANSWERS_S) -> Interpreter | Unclear:
    """Start the Python with the hook on its path; return what it reports about itself, or why it reports nothing."""
    environment = dict(start.environment)
    environment["PYTHONPATH"] = path_with_hook(environment.get("PYTHONPATH", ""))
    environment["TFMEMTOP_SOCKET"] = "/dev/null/doctor"  # no process listens there, and nothing is sent
    try:
        process = subprocess.Popen(
            [*start.words, "-c", _ASK],
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        return Unclear(f"{start.words[0]} cannot be started: {error.strerror or error}", _SHALL_START, missing=True)
    try:
        told, complaint = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return Unclear(f"{start.words[0]} did not answer within {timeout_s:.0f} s", _SHALL_START, missing=True)
    answer = told.decode(errors="replace").rpartition(_MARK)[2]
    try:
        found: Any = json.JSONDecoder().raw_decode(answer)[0]
        flags = tuple(word for word in start.words if word.startswith("-") and set(word[1:]) <= set(_KEPT))
        return Interpreter(
            version=str(found["version"]),
            executable=str(found["executable"]),
            hook=found["hook"] is True,
            tensorflow=_as_in_tensorflow(found.get("tensorflow")),
            folder=found.get("folder"),
            flags=flags,
            error=str(found.get("error", "")),
        )
    except (ValueError, TypeError, KeyError):
        last = complaint.decode(errors="replace").strip().splitlines()[-1:] or [""]
        return Unclear(f"{start.words[0]} ended with {process.returncode}: {last[0]}", _SHALL_START, missing=True)


def _as_in_tensorflow(version: str | None) -> str | None:
    """Return the *version* of a package as TensorFlow itself names it: ``2.22.0rc0`` as ``2.22.0-rc0``."""
    return version and re.sub(r"\.?(rc|dev)", r"-\1", version)


def _flags(rest: list[str]) -> list[str]:
    """Return the options in ``_KEPT`` that stand before the script, ``-c`` or ``-m``. *rest* follows ``python``."""
    try:
        options, _ = getopt(rest, _PYTHONS_OPTIONS)
    except GetoptError:
        return []
    before = takewhile(lambda option: option[0] not in ("-c", "-m"), options)
    return [flag for flag, _ in before if flag[1] in _KEPT]


def _of_env(rest: list[str], environment: Mapping[str, str], cwd: Path, depth: int) -> Start | Unclear:
    if rest and rest[0].startswith("-"):
        return Unclear(f"the meaning of env {rest[0]} is unknown here")
    changed = dict(environment)
    while rest and "=" in rest[0]:
        name, _, value = rest.pop(0).partition("=")
        changed[name] = value
    return resolve(rest, changed, cwd, depth + 1) if rest else Unclear("env starts nothing that is known")


def _first_line(path: Path) -> str | None:
    """Return the text after ``#!`` in a script's first line; ``None`` if the file has none or cannot be read."""
    try:
        with path.open("rb") as file:
            line = file.read(_FIRST_LINE).partition(b"\n")[0]
    except OSError:
        return None
    return line[2:].decode(errors="surrogateescape").strip() if line.startswith(b"#!") else None
