"""Find the smallest memory limit under which a command still works, by trying.

usage: tfmemtop fit [--seconds N] [OPTIONS] -- COMMAND…
example: tfmemtop fit -- python train.py

tfmemtop starts the command several times, each time with another limit. It stops a try that has run long enough. At
the end it prints a table of the tries and the setting to use. With --largest it finds the largest number that
works in the command, such as a batch size, instead of a limit. More: tfmemtop help fit.
exit code: 0 if a limit or value was found, 1 if not, 3 if the limit had no effect, 130 if the search was interrupted.
"""

import asyncio
import signal
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from tfmemtop.cli import Refusal
from tfmemtop.cli.arguments import JSON, RunArguments, seconds, whole_number
from tfmemtop.cli.interpreter import Interpreter, Start, ask
from tfmemtop.cli.interpreter import resolve as find_python
from tfmemtop.cli.launch import ask_machine, bounds, make_launch, resolve
from tfmemtop.cli.output import note, print_json, print_lines, say
from tfmemtop.cli.parser import FOR_RUN, Trailing, option
from tfmemtop.engine.process.launch import Launch, Launched, readable, start
from tfmemtop.engine.stream.server import Client, connect
from tfmemtop.events import Command, Event, Relaunch, Stop, Unbuilt
from tfmemtop.events.commands import TRY_GRACE_S
from tfmemtop.exit_codes import INTERRUPTED
from tfmemtop.experiments.fit.largest import Wanted, parse_wanted
from tfmemtop.experiments.fit.plan import (
    SECONDS,
    SECONDS_MOST,
    STEPS_MOST,
    TRIES,
    TRIES_MOST,
    WRONG_ALLOCATOR,
    ImpossibleSearch,
    Plan,
)
from tfmemtop.experiments.fit.search import Tried
from tfmemtop.experiments.fit.session import INTERRUPTED as STOPPED_BY_USER
from tfmemtop.experiments.fit.session import SessionFit
from tfmemtop.experiments.fit.text import advice, conclusion, result, table, trial_words
from tfmemtop.experiments.fit.watch import Goal
from tfmemtop.findings import probe as probe_text
from tfmemtop.probe.build import PROBE, REPLAY, build
from tfmemtop.settings import Growth

_INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_NO_EFFECT = 3
_WIDTH = 96


_FOR_SEARCH = "for the search"


class FitArguments(RunArguments):
    """The options of the search: how far a try has to get, the range of limits or of a value, the number of tries."""

    trailing = Trailing.NEEDED
    seconds: float | None = option(
        _FOR_SEARCH,
        f"how many seconds a try must run, 1 to {SECONDS_MOST} (default {SECONDS:g})",
        metavar="N",
        type=seconds(1, SECONDS_MOST),
    )
    steps: int | None = option(
        _FOR_SEARCH,
        "how many steps a try must make instead: calls of the busiest tf.function, or Keras steps",
        metavar="N",
        type=whole_number(STEPS_MOST),
    )
    value: str | None = option(
        _FOR_SEARCH,
        "find the largest number that works in place of {NAME} in COMMAND, under the limit of --to",
        "--largest",
        metavar="NAME=LOW..HIGH",
    )
    smallest: str | None = option(_FOR_SEARCH, "the smallest limit to try", "--from", metavar="SIZE")
    largest: str | None = option(
        _FOR_SEARCH, "the largest limit to try (default: no limit in the first try)", "--to", metavar="SIZE"
    )
    tries: int = option(
        _FOR_SEARCH,
        f"the largest number of tries, 1 to {TRIES_MOST} (default {TRIES})",
        metavar="N",
        type=whole_number(TRIES_MOST),
        default=TRIES,
    )
    growth: Growth | None = option(FOR_RUN, "memory growth; on if not given", choices=("on", "off"))
    memory_limit: str | None = None
    cpu_pool: str | None = None
    no_record: bool = True
    json: bool = JSON

    def check(self) -> None:
        if self.seconds is not None and self.steps is not None:
            raise Refusal("give --seconds or --steps, not both")
        if self.allocator == "cuda_malloc_async":
            raise Refusal(WRONG_ALLOCATOR)
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


ARGUMENTS = FitArguments


def run(arguments: FitArguments) -> int:
    """Make the tries, with a line for each on stderr, and print the result.

    Returns 0 if a limit was found, 1 if not, 3 if a limit had no effect, 130 if the search was interrupted.

    Raises:
        Refusal: the script cannot be started, or a setting is not valid.
    """
    wanted = arguments.wanted
    machine = ask_machine()
    launch = make_launch(arguments, arguments.command, resolve(arguments, machine))
    smallest, largest, ceiling = bounds(launch.settings, arguments.smallest, arguments.largest, machine)
    try:
        plan = Plan(
            command=list(map(readable, launch.argv)),
            settings=launch.settings,
            has_gpus=bool(machine.uuids),
            host_memory=machine.host_memory or 0,
            goal=arguments.goal,
            tries=arguments.tries,
            smallest=smallest,
            largest=largest,
            ceiling=ceiling,
            wanted=wanted,
        )
    except ImpossibleSearch as error:
        raise Refusal(str(error)) from error
    if wanted is not None and not plan.on_gpu and arguments.largest is None:
        raise Refusal("without a GPU, --largest needs --to: the size of the CPU's pool in which the value shall fit")
    if launch.probe:
        _build_for(launch)
    fit = SessionFit(plan)
    launched = asyncio.run(_Fit(fit).run(launch))
    _print(fit, launched.output_path, arguments)
    if fit.stopped == STOPPED_BY_USER:
        return INTERRUPTED
    if fit.search.unproved is not None:
        return _NO_EFFECT
    return 0 if fit.search.found is not None else 1


class _Fit:
    """Makes the tries of *search* as runs of one session, with a line on stderr for each."""

    def __init__(self, search: SessionFit) -> None:
        self._search = search
        self._told = True  # whether the line of the present try has its result

    async def run(self, launch: Launch) -> Launched:
        """Start the session of *launch*, make the tries, end the session. Return where its output is.

        INT, TERM and HUP end the try that runs, and start no further one. The second of them kills it.

        Raises:
            Refusal: the command cannot be started.
            OSError: the session cannot be reached.
        """
        for command in self._search.begin(0):  # the first try is the session's first run
            if isinstance(command, Relaunch):
                argv = launch.argv if self._search.plan.wanted is None else command.argv
                launch = msgspec.structs.replace(launch, argv=argv, settings=command.settings)
        self._announce()
        interrupts: asyncio.Queue[None] = asyncio.Queue()
        with _on_interrupt(lambda: interrupts.put_nowait(None)):
            launched = await asyncio.to_thread(start, launch)
            if launched.error is not None:
                note("not started")
                raise Refusal(launched.error, launched.exit_code)
            client = await connect(launched.socket)
            heeding = asyncio.create_task(self._heed(interrupts, client))
            await self._follow(client)
            heeding.cancel()
        if not self._told:
            note(self._search.stopped)
        return launched

    async def _heed(self, interrupts: asyncio.Queue[None], client: Client) -> None:
        """End the search and its session at the first of *interrupts*, and kill the try at the next."""
        grace_s = TRY_GRACE_S
        while True:
            await interrupts.get()
            self._search.stop()
            await client.send(Stop(grace_s=grace_s, quit=True))
            grace_s = 0.0

    async def _follow(self, client: Client) -> None:
        """Pass the session's events to the search, and the search's commands to the session, until that has ended."""
        async for batch in client.events():
            was_going = self._search.going
            for command in [command for event in batch for command in self._take(event)]:
                if isinstance(command, Relaunch):
                    self._announce()
                await client.send(command)
            if was_going and not self._search.going:
                await client.send(Stop(grace_s=TRY_GRACE_S, quit=True))
        if self._search.going:
            self._search.stop("the engine has ended")

    def _announce(self) -> None:
        search = self._search
        what = trial_words(search.trial, search.plan.wanted)
        note(f"tfmemtop: try {search.number} of at most {search.plan.tries}: {what} … ", end="")
        self._told = False

    def _take(self, event: Event) -> list[Command]:
        """Pass *event* to the search, and print the result of the try if it is over."""
        tried = self._search.search.tried
        known = len(tried)
        commands = self._search.take(event)
        if len(tried) > known:
            note(result(tried[-1]))
            self._told = True
        return commands


@contextmanager
def _on_interrupt(interrupt: Callable[[], None]) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    numbers = [number for number in _INTERRUPTS if signal.getsignal(number) is not signal.SIG_IGN]
    for number in numbers:
        loop.add_signal_handler(number, interrupt)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


def _print(fit: SessionFit, path: str | None, arguments: FitArguments) -> None:
    search = fit.search
    sentences = conclusion(search, fit.stopped, fit.hint)
    if arguments.json:
        common: dict[str, object] = {
            "found": search.found is not None,
            "no_effect": search.unproved is not None,
            "settled": bool(search.tried) and search.settled,
            "stopped": fit.stopped or None,
            "sentences": sentences,
            "output": path,
            "tries": [_to_json(tried) for tried in search.tried],
        }
        print_json(common | search.figures())
        return
    wrapped = [part for line in sentences for part in textwrap.wrap(line, _WIDTH)]
    suggested = advice(fit.plan.suggested(search), arguments.command)
    lines = [line.text for line in table(search)]
    printed = [f"What the script printed in these tries: {path}"] if path else []
    blocks = filter(None, (lines, wrapped, suggested, printed))
    print_lines(line for number, block in enumerate(blocks) for line in ([""] * bool(number) + block))


def _to_json(tried: Tried) -> dict[str, object]:
    how = {"passed": tried.passed, "result": tried.how.result, "how": tried.how.text}
    return msgspec.structs.asdict(tried) | how


def _build_for(launch: Launch) -> None:
    """Build the probe and the replay for the TensorFlow of the launch's command, with a line for each on stderr.

    Otherwise they would be built during the first tries, and the probe would come too late to record these. Nothing is
    built, and nothing printed, if they exist already, or if the command's Python cannot be found, because it is started
    by a shell script, for example.
    """
    cwd = Path(launch.cwd)
    start = find_python(launch.argv, launch.environment, cwd)
    python = ask(start, cwd) if isinstance(start, Start) else start
    if not isinstance(python, Interpreter) or python.folder is None or python.tensorflow is None:
        return
    for product, title in ((PROBE, probe_text.PROBE), (REPLAY, probe_text.REPLAY)):
        begun: list[float] = []

        def begin(title: str = title, begun: list[float] = begun) -> None:
            begun.append(time.monotonic())
            note(f"tfmemtop: {probe_text.building_text(title, python.tensorflow or '')} … ", end="")

        built = build(Path(python.folder), product, begin)
        if begun:
            note(probe_text.built_text(time.monotonic() - begun[0], done=built.unbuilt is None))
        if built.unbuilt is not None:
            say(probe_text.no_prediction(msgspec.convert(built.unbuilt, Unbuilt), title))
            return
