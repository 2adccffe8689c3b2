"""``tfmemtop doctor [-- COMMAND…]``: what a run of COMMAND would find here, and what would make it complete."""

import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec

from tfmemtop.commands.arguments import Arguments
from tfmemtop.commands.launching import working_folder
from tfmemtop.commands.saying import tell_coloured, tell_json
from tfmemtop.commands.screen import SMALLEST
from tfmemtop.doctor import here, inside
from tfmemtop.doctor.check import Check, run_all
from tfmemtop.doctor.interpreter import Start, ask, resolve
from tfmemtop.safe import safe

_ANSWERS_S = 12.0  # longer than the command's Python has
_COLOURS = {"ok": "32", "missing": "31", "unknown": "33"}


class Report(msgspec.Struct, frozen=True):
    """What ``--json`` prints; ``complete`` if nothing is missing."""

    complete: bool
    checks: list[dict[str, str]]


def run(arguments: Arguments) -> int:
    """Print how each thing stands that a run needs: 0 if nothing is missing, else 1."""
    checks = examine(arguments.command)
    complete = all(check.state != "missing" for check in checks)
    if arguments.json:
        report = Report(complete, [check._asdict() for check in checks])
        tell_json(msgspec.json.format(msgspec.json.encode(report)))
    else:
        tell_coloured(lines(checks, coloured=_has_colours()))
    return 0 if complete else 1


def examine(command: tuple[str, ...]) -> list[Check]:
    """Every check, in the order in which they are shown."""
    environment = dict(os.environ)
    cwd = Path(working_folder())
    groups: dict[tuple[str, ...], Callable[[], list[Check]]] = {
        ("driver", "processes"): _driver,
        ("hook", "tensorflow", "pools", "compiler"): partial(_command, command, environment, cwd),
        ("sockets",): lambda: [here.sockets()],
        ("cgroup",): lambda: [here.memory()],
        ("terminal",): lambda: [here.terminal(environment, SMALLEST)],
        ("locale",): lambda: [here.locale(environment)],
    }
    return run_all(groups, _ANSWERS_S)


def _driver() -> list[Check]:
    reading, version = here.read_driver()
    return [here.driver(reading, version), here.shares(reading)]


def _command(command: tuple[str, ...], environment: dict[str, str], cwd: Path) -> list[Check]:
    asked: inside.Asked = None
    if command:
        found = resolve(command, environment, cwd)
        asked = ask(found, cwd) if isinstance(found, Start) else found
    compiler = inside.compiler()
    return [inside.hook(asked), inside.tensorflow(asked), inside.pools(asked, compiler), compiler]


def lines(checks: list[Check], coloured: bool = False) -> list[str]:
    """A line for each check, in columns."""
    widths = [max(len(getattr(check, name)) for check in checks) for name in ("name", "state")]
    shown = []
    for check in checks:
        state = check.state.ljust(widths[1])
        if coloured:
            state = f"\x1b[{_COLOURS[check.state]}m{state}\x1b[0m"
        text = safe(f"{check.text}; {check.remedy}" if check.remedy else check.text)
        shown.append(f"{check.name.ljust(widths[0])}  {state}  {text}")
    return shown


def _has_colours() -> bool:
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb"
    return not plain and sys.stdout is not None and sys.stdout.isatty()
