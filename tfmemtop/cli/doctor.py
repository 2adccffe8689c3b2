"""Check what this machine lacks for a run.

usage: tfmemtop doctor [--json] [-- COMMAND…]
example: tfmemtop doctor -- python train.py

It checks the driver, the hook, TensorFlow, how TensorFlow's pools can be read, the compiler, the sockets and the
terminal. It prints a line for each: ok; missing, with what helps; or unknown. It does not run COMMAND. It only starts
COMMAND's Python, to look for TensorFlow.
exit code: 0 if nothing is missing, else 1.
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from enum import Enum
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tfmemtop.agent.layouts import layout_of
from tfmemtop.charset import locale_name, takes_utf8
from tfmemtop.cli.arguments import JSON
from tfmemtop.cli.interpreter import Interpreter, Start, Unclear, ask, resolve
from tfmemtop.cli.launch import SMALLEST, working_folder
from tfmemtop.cli.output import print_coloured, print_json, takes_colours
from tfmemtop.cli.parser import BaseArguments, Trailing
from tfmemtop.engine.sources.host import BY_OPTION, shutting_flag
from tfmemtop.engine.sources.nvml import Nvml, NvmlReading
from tfmemtop.engine.sources.processes import pid_namespace
from tfmemtop.engine.stream.folders import open_session
from tfmemtop.events import Level, NoticeKind, Unbuildable
from tfmemtop.failure import reason as reason_of
from tfmemtop.findings.rules.notices import say
from tfmemtop.probe.build import find_compiler, is_cached, lack_of_addresses
from tfmemtop.safe import safe
from tfmemtop.units import counted


class CheckState(str, Enum):
    """The state of a thing that a run needs."""

    OK = "ok"
    MISSING = "missing"
    UNKNOWN = "unknown"


class Check(NamedTuple):
    """One thing that a run needs: its state, what was found, and what helps if something is missing."""

    name: str
    state: CheckState
    text: str
    remedy: str = ""


def ok(name: str, text: str) -> Check:
    """Return a check that found what a run needs."""
    return Check(name, CheckState.OK, text)


def missing(name: str, text: str, remedy: str = "") -> Check:
    """Return a check that found something missing."""
    return Check(name, CheckState.MISSING, text, remedy)


def unknown(name: str, text: str, remedy: str = "") -> Check:
    """Return a check that could not find out."""
    return Check(name, CheckState.UNKNOWN, text, remedy)


def run_all(groups: dict[tuple[str, ...], Callable[[], list[Check]]], timeout_s: float) -> list[Check]:
    """Run all groups of checks at once, and return their results in the order of *groups*.

    Each key of *groups* has the names of the checks that its function returns. A check that raises an exception, or has
    no result within *timeout_s* seconds, is unknown.
    """
    found: dict[tuple[str, ...], list[Check]] = {}

    def run(names: tuple[str, ...], checks: Callable[[], list[Check]]) -> None:
        try:
            found[names] = checks()
        except Exception as error:
            why = f"the check has failed: {type(error).__name__}: {error}"
            found[names] = [unknown(name, why) for name in names]

    # Not a thread pool: at its end it waits for its threads, and a call to a driver may never return.
    threads = [threading.Thread(target=run, args=each, daemon=True) for each in groups.items()]
    for thread in threads:
        thread.start()
    give_up = time.monotonic() + timeout_s
    for thread in threads:
        thread.join(max(0.0, give_up - time.monotonic()))
    late = f"no answer within {timeout_s:.0f} s"
    return [check for names in groups for check in found.get(names) or [unknown(name, late) for name in names]]


_NVIDIA = "0x10de"  # NVIDIA's vendor id on the PCI bus
_DISPLAYS = ("0x0300", "0x0302")  # PCI classes: graphics cards with and without a display output


def read_driver(nvml: Nvml | None = None) -> tuple[NvmlReading, str | None]:
    """Return a reading of the GPUs, and the driver's version."""
    nvml = nvml or Nvml()
    reading = nvml.read()
    version = nvml.driver_version()
    nvml.close()
    return reading, version


def driver(reading: NvmlReading, version: str | None, root: Path = Path("/")) -> Check:
    """Check whether the driver answers, or the machine has no GPU."""
    trouble = next((each for each in reading.troubles if each.kind), None)
    if reading.devices and trouble is None:
        names = [device.name for device in reading.devices]
        gpus = f"{counted(len(names), 'GPU')}: {', '.join(dict.fromkeys(names))}"
        return ok("driver", f"{version or 'version unknown'}, {gpus}")
    if trouble is None or trouble.kind is NoticeKind.NO_GPU:
        return missing("driver", "the driver answers but shows no GPU", "in a container: --gpus all")
    if trouble.level is Level.ERROR or _has_card(root):
        return missing("driver", *say(trouble))
    return ok("driver", "no NVIDIA GPU here; TensorFlow's pool on the CPU is shown")


def shares(reading: NvmlReading, root: Path = Path("/")) -> Check:
    """Check whether the driver reports GPU memory per process."""
    name = "processes"
    if not reading.devices:
        return ok(name, "there is no GPU")
    reason = next((one.processes_missing for one in reading.readings if one.processes_missing), None)
    told = any(process.used is not None for one in reading.readings for process in one.processes)
    if pid_namespace(root) != "first" and not told:
        text = "process numbers here differ from those of the machine; pools are still read"
        text += f"; {reason.text}" if reason else ""
        return unknown(name, text, "start the container with --pid=host")
    if reason and any(device.mig for device in reading.devices):
        return missing(name, reason.text, "run as root, or on a GPU that is not divided")
    if reason:
        remedy = "nothing can be done; the pools, and how much of them is in use, are still read"
        return missing(name, reason.text, remedy)
    return ok(name, "the driver reports memory per process" if told else "no process is on a GPU now")


def sockets() -> Check:
    """Check whether a session can be made. It makes the folder, the lock and the sockets of one, and removes them."""
    try:
        session = open_session()
    except OSError as error:
        return missing("sockets", reason_of(error), "set XDG_RUNTIME_DIR to a folder with room")
    folder = session.path.parent
    session.close()
    return ok("sockets", f"in {folder}")


def terminal(environment: Mapping[str, str], smallest: tuple[int, int]) -> Check:
    """Check whether the screen can be drawn. The terminal must have at least *smallest* columns and rows."""
    name, kind = "terminal", environment.get("TERM", "")
    stdout, stdin = sys.stdout, sys.stdin
    if stdout is None or stdin is None or not (stdout.isatty() and stdin.isatty()):
        return unknown(name, "standard input or output is not a terminal", "record and --once need none")
    if kind in ("", "dumb"):
        return missing(name, f"TERM={kind}: nothing can be drawn on it", "set TERM, such as xterm-256color")
    columns, rows = os.get_terminal_size(stdout.fileno())
    size = f"{columns} by {rows}, {kind}"
    if 0 < columns < smallest[0] or 0 < rows < smallest[1]:
        return missing(name, size, f"make it {smallest[0]} by {smallest[1]} or larger")
    colours = "no colours, as NO_COLOR asks" if environment.get("NO_COLOR") else "16 colours of its own"
    if not takes_utf8(environment):
        locale = locale_name(environment)
        return Check(
            name,
            CheckState.OK,
            f"{size}, {colours}, in ASCII, as the locale {locale} asks",
            "LANG=C.UTF-8 draws finer graphs",
        )
    return ok(name, f"{size}, {colours}")


def _has_card(root: Path) -> bool:
    """Return whether the machine has a graphics card by NVIDIA, even if no driver is loaded."""
    for folder in (root / "sys/bus/pci/devices").glob("*"):
        try:
            vendor, kind = ((folder / name).read_text().strip() for name in ("vendor", "class"))
        except OSError:
            continue
        if vendor == _NVIDIA and kind.startswith(_DISPLAYS):
            return True
    return False


_OLDEST = (3, 9)  # the oldest Python that the hook supports
_LIBRARY = "libtensorflow_framework.so.2"
_HEADER = "include/tensorflow/core/common_runtime/bfc_allocator.h"

Answer = Interpreter | Unclear | None
"""The answer of a command's Python, or the reason why there is none; ``None`` without a command."""


def _untold(name: str, answer: Unclear | None) -> Check:
    if answer is None:
        return unknown(name, "no command was given", "name the command: tfmemtop doctor -- python train.py")
    return Check(name, CheckState.MISSING if answer.missing else CheckState.UNKNOWN, answer.text, answer.remedy)


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
        return missing("hook", BY_OPTION[flag].text, f"start it without -{flag}")
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
    elif built_with.state is not CheckState.OK:
        lacking, remedy = built_with.text, built_with.remedy
    if not lacking:
        where = "is in the cache" if is_cached(folder) else "the first run builds"
        lost = lack_of_addresses(folder)
        also = f"; {NoticeKind.NO_ADDRESSES.text.format(detail=lost)}" if lost else ""
        return ok("pools", f"{in_place}{', and ' * bool(in_place)}by a compiled library, which {where}{also}")
    if in_place:
        return ok("pools", f"{in_place}; not by a compiled library: {lacking}")
    return missing("pools", f"only what is in use is known: {lacking}", remedy)


_ANSWERS_S = 12.0  # more than the time limit for the command's Python
_COLOURS = {CheckState.OK: "32", CheckState.MISSING: "31", CheckState.UNKNOWN: "33"}


class DoctorArguments(BaseArguments):
    """``command`` is the command that the user wants to run later."""

    trailing = Trailing.ALLOWED
    json: bool = JSON


ARGUMENTS = DoctorArguments


def run(arguments: DoctorArguments) -> int:
    """Print the state of each thing that a run needs; return 0 if nothing is missing, else 1."""
    found = examine(arguments.command)
    complete = all(check.state is not CheckState.MISSING for check in found)
    if arguments.json:
        print_json({"complete": complete, "checks": [check._asdict() for check in found]})
    else:
        print_coloured(lines(found, coloured=takes_colours()))
    return 0 if complete else 1


def examine(command: tuple[str, ...]) -> list[Check]:
    """Run all checks, and return their results in the order in which they are shown."""
    environment = dict(os.environ)
    cwd = Path(working_folder())
    groups: dict[tuple[str, ...], Callable[[], list[Check]]] = {
        ("driver", "processes"): _driver,
        ("hook", "tensorflow", "pools", "compiler"): partial(_command, command, environment, cwd),
        ("sockets",): lambda: [sockets()],
        ("terminal",): lambda: [terminal(environment, SMALLEST)],
    }
    return run_all(groups, _ANSWERS_S)


def _driver() -> list[Check]:
    reading, version = read_driver()
    return [driver(reading, version), shares(reading)]


def _command(command: tuple[str, ...], environment: dict[str, str], cwd: Path) -> list[Check]:
    answer: Answer = None
    if command:
        start = resolve(command, environment, cwd)
        answer = ask(start, cwd) if isinstance(start, Start) else start
    found = compiler()
    return [hook(answer), tensorflow(answer), pools(answer, found), found]


def lines(found: list[Check], coloured: bool = False) -> list[str]:
    """Return a line for each check, in columns."""
    names, states = (max(map(len, column)) for column in zip(*((c.name, c.state.value) for c in found), strict=True))
    shown = []
    for check in found:
        state = check.state.value.ljust(states)
        if coloured:
            state = f"\x1b[{_COLOURS[check.state]}m{state}\x1b[0m"
        text = f"{check.text}; {check.remedy}" if check.remedy else check.text
        shown.append(f"{check.name.ljust(names)}  {state}  {safe(text)}")
    return shown
