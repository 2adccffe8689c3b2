"""Find the smallest memory limit under which a command still works, by trying.

usage: tfmemtop fit [--seconds N] [OPTIONS] -- COMMAND…
example: tfmemtop fit -- python train.py

tfmemtop starts the command several times, each time with another limit. It stops a try that has run long enough. At
the end it prints a table of the tries and the setting to use. With --largest it finds the largest number that
works in the command, such as a batch size, instead of a limit. More: tfmemtop help fit.
exit code: 0 if a limit or value was found, 1 if not, 3 if the limit had no effect, 130 if the search was interrupted.
"""

import asyncio
import os
import tempfile
import textwrap
import time
from pathlib import Path

from tfmemtop.cli import Refusal
from tfmemtop.cli.arguments import RunArguments, add_json_option, add_run_options, seconds, whole_number
from tfmemtop.cli.fit_search import FitLargest, FitLimit, build_for
from tfmemtop.cli.launch import ask_machine, bounds, make_launch, resolve
from tfmemtop.cli.output import print_json, print_lines
from tfmemtop.cli.parser import Parser, Trailing
from tfmemtop.events.unstarted import StartError
from tfmemtop.exit_codes import INTERRUPTED
from tfmemtop.experiments.fit.largest import Wanted, parse_wanted
from tfmemtop.experiments.fit.plan import (
    SECONDS,
    SECONDS_MOST,
    STEPS_MOST,
    TRIES,
    TRIES_MOST,
    ImpossibleSearch,
    check,
    impossible_search_text,
    make_plan,
)
from tfmemtop.experiments.fit.session import Stopped, Why
from tfmemtop.experiments.fit.text import advice, stopped_words
from tfmemtop.experiments.fit.watch import Goal
from tfmemtop.findings.starting import start_text, unusable
from tfmemtop.home import writable_output_folder

_NO_EFFECT = 3
_WIDTH = 96


class FitArguments(RunArguments):
    """The options of the search: how far a try has to get, the range of limits or of a value, the number of tries."""

    seconds: float | None = None
    steps: int | None = None
    smallest: str | None = None
    largest: str | None = None
    value: str | None = None
    tries: int = TRIES
    json: bool = False

    def check(self) -> None:
        if self.seconds is not None and self.steps is not None:
            raise Refusal("give --seconds or --steps, not both")
        if self.value is not None and self.smallest is not None:
            raise Refusal("--from is a limit to search from: with --largest, --to gives the limit of every try")

    @property
    def wanted(self) -> Wanted | None:
        """The number and the range of ``--largest``; ``None`` if it is not given.

        Raises:
            Refusal: its value is not a range, or the command has no place for the value.
        """
        if self.value is None:
            return None
        if (wanted := parse_wanted(self.value)) is None:
            expected = "give a name and a range of whole numbers, such as batch=1..4096"
            raise Refusal(f"--largest {self.value}: {expected}")
        if not wanted.is_in(self.command):
            raise Refusal(f"--largest {self.value}: the command has no {{{wanted.name}}} in which to put the value")
        return wanted

    @property
    def goal(self) -> Goal:
        """How far a try has to get."""
        return Goal(SECONDS if self.seconds is None and self.steps is None else self.seconds, self.steps)


def declare(parser: Parser) -> None:
    """Declare the options of a run except for the limit itself, and those of the search."""
    parser.arguments = FitArguments
    parser.trailing = Trailing.NEEDED
    fit = parser.add_argument_group("for the search")
    fit.add_argument(
        "--seconds",
        metavar="N",
        type=seconds(1, SECONDS_MOST),
        help=f"how many seconds a try must run, 1 to {SECONDS_MOST} (default {SECONDS:g})",
    )
    fit.add_argument(
        "--steps",
        metavar="N",
        type=whole_number(STEPS_MOST),
        help="how many steps a try must make instead: calls of the busiest tf.function, or Keras steps",
    )
    fit.add_argument(
        "--largest",
        dest="value",
        metavar="NAME=LOW..HIGH",
        help="find the largest number that works in place of {NAME} in COMMAND, under the limit of --to",
    )
    fit.add_argument("--from", dest="smallest", metavar="SIZE", help="the smallest limit to try")
    fit.add_argument(
        "--to", dest="largest", metavar="SIZE", help="the largest limit to try (default: no limit in the first try)"
    )
    fit.add_argument(
        "--tries",
        metavar="N",
        type=whole_number(TRIES_MOST),
        help=f"the largest number of tries, 1 to {TRIES_MOST} (default {TRIES})",
    )
    add_run_options(parser, sizes=False)
    add_json_option(parser)


def run(arguments: FitArguments) -> int:
    """Make the tries, with a line for each on stderr, and print the result.

    Returns 0 if a limit was found, 1 if not, 3 if a limit had no effect, 130 if the search was interrupted.

    Raises:
        Refusal: the script cannot be started, or a setting is not valid.
    """
    wanted = arguments.wanted
    machine = ask_machine()
    try:
        check(arguments.settings)
    except ImpossibleSearch as error:
        raise Refusal(impossible_search_text(error)) from error
    launch = make_launch(arguments, arguments.command, resolve(arguments, machine))
    smallest, largest, ceiling = bounds(arguments.settings, arguments.smallest, arguments.largest, machine)
    plan = make_plan(
        launch.argv,
        launch.settings,
        has_gpus=bool(machine.uuids),
        host_memory=machine.host_memory or 0,
        goal=arguments.goal,
        tries=arguments.tries,
        smallest=smallest,
        largest=largest,
        ceiling=ceiling,
    )
    if wanted is not None and not plan.on_gpu and arguments.largest is None:
        raise Refusal("without a GPU, --largest needs --to: the size of the CPU's pool in which the value shall fit")
    search = FitLimit(plan, launch) if wanted is None else FitLargest(wanted, plan, launch)
    build_for(launch)
    try:
        folder = writable_output_folder()
    except OSError:
        folder = Path(tempfile.gettempdir())
    path = folder / time.strftime(f"fit-%Y%m%d-%H%M%S-{os.getpid()}.log")
    output = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        asyncio.run(search.run(output))
    except StartError as error:
        raise Refusal(start_text(error.unstarted), error.unstarted.exit_code) from error
    except ValueError as error:
        raise Refusal(unusable(error)) from error
    finally:
        os.close(output)
    _print(search, path, arguments)
    if search.stopped == Stopped(Why.INTERRUPTED):
        return INTERRUPTED
    if search.search.unproved is not None:
        return _NO_EFFECT
    return 0 if search.found else 1


def _print(fit: FitLimit | FitLargest, path: Path, arguments: FitArguments) -> None:
    sentences = fit.conclusion()
    if arguments.json:
        common = {
            "found": fit.found,
            "no_effect": fit.search.unproved is not None,
            "stopped": stopped_words(fit.stopped) if fit.stopped else None,
            "sentences": sentences,
            "output": str(path),
        }
        print_json(common | fit.figures())
        return
    wrapped = [part for line in sentences for part in textwrap.wrap(line, _WIDTH)]
    suggested = advice(fit.plan.suggested(fit.search), arguments.command) if isinstance(fit, FitLimit) else []
    blocks = filter(None, (fit.table(), wrapped, suggested, [f"What the script printed in these tries: {path}"]))
    print_lines(line for number, block in enumerate(blocks) for line in ([""] * bool(number) + block))
