"""The checks of a command's Python: the hook, TensorFlow, how its pools can be read, and the compiler for that."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from tfmemtop.cli.checks.check import Check, Fact, Library, State, missing, ok, unknown
from tfmemtop.cli.checks.interpreter import Interpreter, Unclear
from tfmemtop.engine.sources.hook_absence import BY_OPTION, shutting_flag
from tfmemtop.events import HookAbsence
from tfmemtop.probe.build import find_compiler, is_cached

_OLDEST = (3, 9)  # the oldest Python that the hook supports
_LIBRARY = "libtensorflow_framework.so.2"
_HEADER = "include/tensorflow/core/common_runtime/bfc_allocator.h"

Asked = Interpreter | Unclear | None
"""The answer of a command's Python, or the reason why there is none; ``None`` without a command."""


def _untold(name: str, asked: Unclear | None) -> Check:
    if asked is None:
        return unknown(name, Fact.NO_COMMAND)
    return Check(name, State.MISSING if asked.missing else State.UNKNOWN, asked.fact, asked.values)


def hook(asked: Asked) -> Check:
    """Check whether the command's Python loads the hook."""
    if not isinstance(asked, Interpreter):
        return _untold("hook", asked)
    python = {"version": asked.version, "path": asked.executable}
    if asked.hook:
        return ok("hook", Fact.HOOK_IN, **python)
    if tuple(int(part) for part in asked.version.split(".")[:2] if part.isdigit()) < _OLDEST:
        return missing("hook", Fact.PYTHON_TOO_OLD, **python)
    flag = shutting_flag(["python", *asked.flags])
    if flag:
        return missing("hook", Fact.HOOK_SHUT_OUT, absence=HookAbsence(BY_OPTION[flag]), flag=flag)
    return missing("hook", Fact.HOOK_OUT, **python)


def tensorflow(asked: Asked) -> Check:
    """Check whether the command's Python has TensorFlow, and which version."""
    if not isinstance(asked, Interpreter):
        return _untold("tensorflow", asked)
    if asked.folder is None:
        return missing("tensorflow", Fact.TENSORFLOW_MISSING, path=asked.executable, error=asked.error)
    return ok("tensorflow", Fact.TENSORFLOW_FOUND, version=asked.tensorflow, folder=asked.folder)


def compiler() -> Check:
    """Check whether there is a C++ compiler. It builds the library that reads the pools."""
    try:
        _, version = find_compiler()
    except Exception as error:
        built = getattr(error, "built", None)
        if built is None:
            raise
        return missing("compiler", Fact.COMPILER_MISSING, install=built.unbuilt["detail"])
    return ok("compiler", Fact.COMPILER, version=version)


def without_compiler(version: str | None) -> bool | None:
    """Return whether the hook can read the pools of this TensorFlow without the compiled library.

    ``None`` if the version is not known, or if this tfmemtop has no such reader.
    """
    if version is None or find_spec("tfmemtop.agent.layouts") is None:
        return None
    return import_module("tfmemtop.agent.layouts").layout_of(version) is not None


def pools(asked: Asked, built_with: Check) -> Check:
    """Check how the pools of the command's TensorFlow can be read. *built_with* is the result of :func:`compiler`."""
    if not isinstance(asked, Interpreter):
        return _untold("pools", asked)
    if asked.folder is None:
        return unknown("pools", Fact.POOLS_WITHOUT_TENSORFLOW)
    direct = bool(without_compiler(asked.tensorflow))
    library = _library(Path(asked.folder), asked.tensorflow or "", built_with)
    lacking = built_with.values if library is Library.NO_COMPILER else {}
    there = direct or library in (Library.CACHED, Library.TO_BE_BUILT)
    values = {"direct": direct, "library": library, **lacking}
    return Check("pools", State.OK if there else State.MISSING, Fact.POOLS, values)


def _library(folder: Path, version: str, built_with: Check) -> Library:
    if not (folder / _LIBRARY).is_file():
        return Library.NO_FRAMEWORK
    if not (folder / _HEADER).is_file():
        return Library.NO_HEADERS
    if built_with.state is not State.OK:
        return Library.NO_COMPILER
    return Library.CACHED if is_cached(folder, version) else Library.TO_BE_BUILT
