"""The checks of a command's Python: the hook, TensorFlow, and the way into its pools."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from tfmemtop.doctor.check import Check
from tfmemtop.doctor.interpreter import Interpreter, Unclear
from tfmemtop.engine.shutout import flag_reason, shutting_flag
from tfmemtop.probe.build import find_compiler

_OLDEST = (3, 9)
_LIBRARY = "libtensorflow_framework.so.2"
_HEADER = "include/tensorflow/core/common_runtime/bfc_allocator.h"
_NO_COMMAND = "name the command: tfmemtop doctor -- python train.py"

Asked = Interpreter | Unclear | str | None
"""What is known of a command's Python: what it says, why it is not known which it is, why it says nothing;
``None`` without a command."""


def _untold(name: str, asked: Asked) -> Check:
    if isinstance(asked, Unclear):
        return Check(name, "missing" if asked.missing else "unknown", asked.text, asked.remedy)
    if isinstance(asked, str):
        return Check(name, "missing", asked, "see that the command's Python starts")
    return Check(name, "unknown", "no command was given", _NO_COMMAND)


def hook(asked: Asked) -> Check:
    """Whether the command's Python lets the hook in."""
    if not isinstance(asked, Interpreter):
        return _untold("hook", asked)
    python = f"Python {asked.version}, {asked.executable}"
    if asked.hook:
        return Check("hook", "ok", f"gets into {python}")
    if tuple(int(part) for part in asked.version.split(".")[:2] if part.isdigit()) < _OLDEST:
        return Check("hook", "missing", f"{python} is too old for it", "Python 3.9 or newer")
    flag = shutting_flag(["python", *asked.flags])
    if flag:
        return Check("hook", "missing", flag_reason(flag), f"start it without -{flag}")
    return Check("hook", "missing", f"does not get into {python}", "leave PYTHONPATH and TFMEMTOP_… in its environment")


def tensorflow(asked: Asked) -> Check:
    """Which TensorFlow the command's Python has."""
    if not isinstance(asked, Interpreter):
        return _untold("tensorflow", asked)
    if asked.folder is None:
        text = f"{asked.executable} has none" + (f" ({asked.error})" if asked.error else "")
        return Check("tensorflow", "missing", text, "pip install tensorflow, there")
    return Check("tensorflow", "ok", f"{asked.tensorflow or 'of unknown version'}, {asked.folder}")


def compiler() -> Check:
    """Whether there is a C++ compiler, which the library that looks into the pools is built with."""
    try:
        _, version = find_compiler()
    except Exception as error:
        built = getattr(error, "built", None)
        if built is None:
            raise
        return Check("compiler", "missing", built.text, built.remedy)
    return Check("compiler", "ok", version)


def without_compiler(version: str | None) -> bool | None:
    """Whether the hook reads the pools of this TensorFlow by itself; ``None`` if this tfmemtop cannot."""
    if version is None or find_spec("tfmemtop.agent.layouts") is None:
        return None
    return import_module("tfmemtop.agent.layouts").layout_of(version) is not None


def pools(asked: Asked, built_with: Check) -> Check:
    """How the pools of the command's TensorFlow can be looked into."""
    if not isinstance(asked, Interpreter):
        return _untold("pools", asked)
    if asked.folder is None:
        return Check("pools", "unknown", "there is no TensorFlow to look into")
    direct = without_compiler(asked.tensorflow)
    folder = Path(asked.folder)
    if not (folder / _LIBRARY).is_file():
        lacking, remedy = f"this TensorFlow has no {_LIBRARY}", ""
    elif not (folder / _HEADER).is_file():
        lacking, remedy = "this TensorFlow came without its C++ headers", "install it from its wheel, with pip"
    elif built_with.state != "ok":
        lacking, remedy = built_with.text, built_with.remedy
    else:
        lacking, remedy = "", ""
    ways = ["read by the hook"] * bool(direct) + ["by a library that is built once"] * (not lacking)
    if ways:
        return Check("pools", "ok", ", and ".join(ways) + (f"; not by a library: {lacking}" if lacking else ""))
    return Check("pools", "missing", f"only what is in use is known: {lacking}", remedy)
