"""The text of ``doctor`` about each thing that a run needs, and what helps where it is missing. Pure."""

from collections.abc import Callable, Mapping
from typing import Any

from tfmemtop.cli.checks.check import Check, Fact, Library
from tfmemtop.findings import notice_texts as notices
from tfmemtop.findings.notice_texts import TextAndRemedy, reason_text
from tfmemtop.findings.probe_text import NO_COMPILER
from tfmemtop.limits import HostOwner
from tfmemtop.reports.devices import shares_missing
from tfmemtop.units import counted, format_bytes

Values = Mapping[str, Any]

_UNTOLD = "so it is unknown whether the hook gets into a Python that it starts"


def say(check: Check) -> TextAndRemedy:
    """Return the text of *check*, and what helps."""
    if check.fact in _WORKED_OUT:
        return _WORKED_OUT[check.fact](check.values)
    text, remedy = _SAID[check.fact]
    return TextAndRemedy(text.format(**check.values), remedy.format(**check.values))


def _gpus(values: Values) -> TextAndRemedy:
    names = values["names"]
    return TextAndRemedy(
        f"{values['version'] or 'version unknown'}, {counted(len(names), 'GPU')}: {', '.join(dict.fromkeys(names))}"
    )


def _trouble(values: Values) -> TextAndRemedy:
    trouble = values["trouble"]
    return notices.say_kind(trouble.kind, trouble.detail, trouble.about)


def _pids_differ(values: Values) -> TextAndRemedy:
    text = "process numbers here differ from those of the machine; pools are still read"
    return TextAndRemedy(
        text + (f"; {shares_missing(values['reason'])}" if values["reason"] else ""),
        "start the container with --pid=host",
    )


def _shares_missing(values: Values) -> TextAndRemedy:
    remedy = "nothing can be done; the pools, and how much of them is in use, are still read"
    return TextAndRemedy(
        shares_missing(values["reason"]), "run as root, or on a GPU that is not divided" if values["mig"] else remedy
    )


_LETS_IN = (3, 14)


def _hook_in(values: Values) -> TextAndRemedy:
    version = values["version"]
    later = tuple(int(part) for part in version.split(".")[:2] if part.isdigit()) >= _LETS_IN
    also = ", and into one that runs already: tfmemtop attach PID --inject" if later else ""
    return TextAndRemedy(f"gets into Python {version}, {values['path']}{also}")


def _hook_shut_out(values: Values) -> TextAndRemedy:
    return TextAndRemedy(reason_text(values["absence"]), f"start it without -{values['flag']}")


def _no_tensorflow(values: Values) -> TextAndRemedy:
    error = f" ({values['error']})" if values["error"] else ""
    return TextAndRemedy(f"{values['path']} has none{error}", "run there: pip install tensorflow")


def _tensorflow(values: Values) -> TextAndRemedy:
    return TextAndRemedy(f"{values['version'] or 'of unknown version'}, {values['folder']}")


_LIBRARIES = {
    Library.CACHED: "by a compiled library, which is in the cache",
    Library.TO_BE_BUILT: "by a compiled library, which the first run builds",
}
_LACKING = {
    Library.NO_FRAMEWORK: TextAndRemedy("this TensorFlow has no libtensorflow_framework.so.2"),
    Library.NO_HEADERS: TextAndRemedy(
        "this TensorFlow came without its C++ headers", "install it from its wheel, with pip"
    ),
}


def _pools(values: Values) -> TextAndRemedy:
    library: Library = values["library"]
    lacking = _LACKING.get(library) or TextAndRemedy(NO_COMPILER, values.get("install", ""))
    ways = ["read by the hook"] if values["direct"] else []
    if library in _LIBRARIES:
        return TextAndRemedy(", and ".join([*ways, _LIBRARIES[library]]))
    if ways:
        return TextAndRemedy(f"{ways[0]}; not by a compiled library: {lacking.text}")
    return TextAndRemedy(f"only what is in use is known: {lacking.text}", lacking.remedy)


def _sockets_failed(values: Values) -> TextAndRemedy:
    where = f"{values['file']}: " if values["file"] else ""
    return TextAndRemedy(f"{where}{values['error']}", "set XDG_RUNTIME_DIR to a folder with room")


def _memory_whole(values: Values) -> TextAndRemedy:
    return TextAndRemedy(f"no limit below the machine's {format_bytes(values['machine'])}")


def _memory_limited(values: Values) -> TextAndRemedy:
    owner = "control group" if values["owner"] is HostOwner.CGROUP else values["owner"].value
    total, machine = format_bytes(values["total"]), format_bytes(values["machine"])
    return TextAndRemedy(f"the {owner} may have {total} of the machine's {machine}")


def _terminal(values: Values) -> TextAndRemedy:
    colours = "16 colours of its own" if values["colours"] else "no colours, as NO_COLOR asks"
    return TextAndRemedy(f"{values['columns']} by {values['rows']}, {values['kind']}, {colours}")


def _terminal_small(values: Values) -> TextAndRemedy:
    columns, rows = values["least"]
    return TextAndRemedy(
        f"{values['columns']} by {values['rows']}, {values['kind']}", f"make it {columns} by {rows} or larger"
    )


_WORKED_OUT: dict[Fact, Callable[[Values], TextAndRemedy]] = {
    Fact.GPUS_READ: _gpus,
    Fact.DRIVER_TROUBLE: _trouble,
    Fact.PIDS_DIFFER: _pids_differ,
    Fact.SHARES_MISSING: _shares_missing,
    Fact.HOOK_IN: _hook_in,
    Fact.HOOK_SHUT_OUT: _hook_shut_out,
    Fact.TENSORFLOW_MISSING: _no_tensorflow,
    Fact.TENSORFLOW_FOUND: _tensorflow,
    Fact.POOLS: _pools,
    Fact.SOCKETS_FAILED: _sockets_failed,
    Fact.MEMORY_WHOLE: _memory_whole,
    Fact.MEMORY_LIMITED: _memory_limited,
    Fact.TERMINAL: _terminal,
    Fact.TERMINAL_SMALL: _terminal_small,
}

_SAID: dict[Fact, tuple[str, str]] = {
    Fact.NO_GPU_SHOWN: ("the driver answers but shows no GPU", "in a container: --gpus all"),
    Fact.NO_GPU: ("no NVIDIA GPU here; TensorFlow's pool on the CPU is shown", ""),
    Fact.SHARES_TOLD: ("the driver reports memory per process", ""),
    Fact.NO_PROCESS: ("no process is on a GPU now", ""),
    Fact.NO_GPU_TO_SHARE: ("there is no GPU", ""),
    Fact.NO_COMMAND: ("no command was given", "name the command: tfmemtop doctor -- python train.py"),
    Fact.COMMAND_NOT_FOUND: ("{name}: command not found", "check its spelling and PATH"),
    Fact.NOT_EXECUTABLE: ("{name}: cannot be executed", "chmod +x, or name its interpreter"),
    Fact.INTERPRETER_LOOP: ("{name}: its #! lines form a loop", ""),
    Fact.NOT_PYTHON: ("{name} is not a Python, " + _UNTOLD, ""),
    Fact.RUN_BY_OTHER: ("{name} is run by {interpreter}, " + _UNTOLD, ""),
    Fact.ENV_OPTION: ("the meaning of env {word} is unknown here", ""),
    Fact.ENV_EMPTY: ("env starts nothing", ""),
    Fact.UV_COMMAND: ("uv run {word} is not a Python, " + _UNTOLD, ""),
    Fact.CANNOT_START: ("{name} cannot be started: {error}", "see that the command's Python starts"),
    Fact.NO_ANSWER: ("{name} did not answer within {seconds:.0f} s", "see that the command's Python starts"),
    Fact.PYTHON_ENDED: ("{name} ended with {code}: {line}", "see that the command's Python starts"),
    Fact.PYTHON_TOO_OLD: ("Python {version}, {path} is too old for it", "Python 3.9 or newer"),
    Fact.HOOK_OUT: (
        "does not get into Python {version}, {path}",
        "leave PYTHONPATH and TFMEMTOP_… in its environment",
    ),
    Fact.POOLS_WITHOUT_TENSORFLOW: ("there is no TensorFlow to look into", ""),
    Fact.COMPILER: ("{version}", ""),
    Fact.COMPILER_MISSING: (NO_COMPILER, "{install}"),
    Fact.SOCKETS: ("in {folder}", ""),
    Fact.NOT_A_TERMINAL: ("standard input or output is not a terminal", "record and --once need none"),
    Fact.TERMINAL_KIND: ("TERM={kind}: nothing can be drawn on it", "set TERM, such as xterm-256color"),
    Fact.LOCALE_UTF8: ("{name}: UTF-8", ""),
    Fact.LOCALE_UNSET: ("none is set, so UTF-8 is assumed; --ascii draws in ASCII", ""),
    Fact.LOCALE_ASCII: ("{name}: drawn in ASCII", "LANG=C.UTF-8 draws finer graphs"),
    Fact.CHECK_FAILED: ("the check has failed: {error}", ""),
    Fact.CHECK_LATE: ("no answer within {seconds:.0f} s", ""),
}
