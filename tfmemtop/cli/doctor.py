"""Check what this machine lacks for a run.

usage: tfmemtop doctor [--json] [-- COMMAND…]
example: tfmemtop doctor -- python train.py

It checks the driver, the hook, TensorFlow, how TensorFlow's pools can be read, the compiler, the sockets and the
terminal. It prints a line for each: ok; missing, with what helps; or unknown. It does not run COMMAND. It only starts
COMMAND's Python, to look for TensorFlow.
exit code: 0 if nothing is missing, else 1.
"""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tfmemtop.cli import checks
from tfmemtop.cli.arguments import JSON
from tfmemtop.cli.checks import Check, State, run_all
from tfmemtop.cli.interpreter import Start, ask, resolve
from tfmemtop.cli.launch import SMALLEST, working_folder
from tfmemtop.cli.output import print_coloured, print_json, takes_colours
from tfmemtop.cli.parser import BaseArguments, Trailing
from tfmemtop.safe import safe

_ANSWERS_S = 12.0  # more than the time limit for the command's Python
_COLOURS = {State.OK: "32", State.MISSING: "31", State.UNKNOWN: "33"}


class DoctorArguments(BaseArguments):
    """``command`` is the command that the user wants to run later."""

    trailing = Trailing.ALLOWED
    json: bool = JSON


ARGUMENTS = DoctorArguments


def run(arguments: DoctorArguments) -> int:
    """Print the state of each thing that a run needs; return 0 if nothing is missing, else 1."""
    found = examine(arguments.command)
    complete = all(check.state is not State.MISSING for check in found)
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
        ("sockets",): lambda: [checks.sockets()],
        ("terminal",): lambda: [checks.terminal(environment, SMALLEST)],
    }
    return run_all(groups, _ANSWERS_S)


def _driver() -> list[Check]:
    reading, version = checks.read_driver()
    return [checks.driver(reading, version), checks.shares(reading)]


def _command(command: tuple[str, ...], environment: dict[str, str], cwd: Path) -> list[Check]:
    answer: checks.Answer = None
    if command:
        start = resolve(command, environment, cwd)
        answer = ask(start, cwd) if isinstance(start, Start) else start
    compiler = checks.compiler()
    return [checks.hook(answer), checks.tensorflow(answer), checks.pools(answer, compiler), compiler]


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
