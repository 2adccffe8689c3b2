"""The checks of a command's Python: the hook, TensorFlow, how its pools can be read, and the compiler for that."""

from pathlib import Path

from tfmemtop.agent.layouts import layout_of
from tfmemtop.cli.checks.check import Check, State, missing, ok, unknown
from tfmemtop.cli.checks.interpreter import Interpreter, Unclear
from tfmemtop.engine.sources.hook_absence import BY_OPTION, shutting_flag
from tfmemtop.events import HookAbsence, NoticeKind, Unbuildable
from tfmemtop.findings.notices import reason_text
from tfmemtop.probe.build import ADDRESSES, build, find_compiler, is_cached

_OLDEST = (3, 9)  # the oldest Python that the hook supports
_LIBRARY = "libtensorflow_framework.so.2"
_HEADER = "include/tensorflow/core/common_runtime/bfc_allocator.h"

Answer = Interpreter | Unclear | None
"""The answer of a command's Python, or the reason why there is none; ``None`` without a command."""


def _untold(name: str, answer: Unclear | None) -> Check:
    if answer is None:
        return unknown(name, "no command was given", "name the command: tfmemtop doctor -- python train.py")
    return Check(name, State.MISSING if answer.missing else State.UNKNOWN, answer.text, answer.remedy)


def hook(answer: Answer) -> Check:
    """Check whether the command's Python loads the hook."""
    if not isinstance(answer, Interpreter):
        return _untold("hook", answer)
    python = f"Python {answer.version}, {answer.executable}"
    version = tuple(int(part) for part in answer.version.split(".")[:2] if part.isdigit())
    if answer.hook:
        return ok("hook", f"gets into {python}")
    if version < _OLDEST:
        return missing("hook", f"{python} is too old for it", "Python 3.9 or newer")
    flag = shutting_flag(["python", *answer.flags])
    if flag:
        return missing("hook", reason_text(HookAbsence(BY_OPTION[flag])), f"start it without -{flag}")
    return missing("hook", f"does not get into {python}", "leave PYTHONPATH and TFMEMTOP_… in its environment")


def tensorflow(answer: Answer) -> Check:
    """Check whether the command's Python has TensorFlow, and which version."""
    if not isinstance(answer, Interpreter):
        return _untold("tensorflow", answer)
    if answer.folder is None:
        error = f" ({answer.error})" if answer.error else ""
        return missing("tensorflow", f"{answer.executable} has none{error}", "run there: pip install tensorflow")
    return ok("tensorflow", f"{answer.tensorflow or 'of unknown version'}, {answer.folder}")


def compiler() -> Check:
    """Check whether there is a C++ compiler. It builds the library that reads the pools."""
    try:
        _, version = find_compiler()
    except Exception as error:
        built = getattr(error, "built", None)
        if built is None:
            raise
        return missing("compiler", Unbuildable.NO_COMPILER.text, built.unbuilt["detail"])
    return ok("compiler", version)


def pools(answer: Answer, built_with: Check) -> Check:
    """Check how the pools of the command's TensorFlow can be read. *built_with* is the result of :func:`compiler`."""
    if not isinstance(answer, Interpreter):
        return _untold("pools", answer)
    if answer.folder is None:
        return unknown("pools", "there is no TensorFlow to look into")
    folder, version = Path(answer.folder), answer.tensorflow or ""
    in_place = "read by the hook" if layout_of(version) is not None else ""
    lacking = remedy = ""
    if not (folder / _LIBRARY).is_file():
        lacking = f"this TensorFlow has no {_LIBRARY}"
    elif not (folder / _HEADER).is_file():
        lacking, remedy = "this TensorFlow came without its C++ headers", "install it from its wheel, with pip"
    elif built_with.state is not State.OK:
        lacking, remedy = built_with.text, built_with.remedy
    if not lacking:
        by = f"{in_place}{', and ' * bool(in_place)}by a compiled library"
        return ok("pools", f"{by}, which {_in_cache(folder) if is_cached(folder) else 'the first run builds'}")
    if in_place:
        return ok("pools", f"{in_place}; not by a compiled library: {lacking}")
    return missing("pools", f"only what is in use is known: {lacking}", remedy)


def _in_cache(folder: Path) -> str:
    """Return the words about a library in the cache; the one that finds tensors is built if it is not there."""
    unbuilt = build(folder, ADDRESSES).unbuilt
    if unbuilt is None:
        return "is in the cache"
    why = NoticeKind.NO_ADDRESSES.text.format(detail=unbuilt.get("detail") or unbuilt["why"])
    return f"is in the cache; {why}"
