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
import signal
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path

import msgspec

from tfmemtop.cli import Refusal
from tfmemtop.cli.arguments import JSON, RunArguments, seconds, whole_number
from tfmemtop.cli.interpreter import Interpreter, Start, ask
from tfmemtop.cli.interpreter import resolve as find_python
from tfmemtop.cli.launch import ask_machine, bounds, make_launch, resolve
from tfmemtop.cli.output import note, print_json, print_lines, say
from tfmemtop.cli.parser import FOR_RUN, Trailing, option
from tfmemtop.engine.process.launch import Launch
from tfmemtop.engine.sources.readings import DRIVER_WAIT_S
from tfmemtop.engine.stream.folders import open_session
from tfmemtop.engine.watch import Watch
from tfmemtop.events import Command, Event, Output, Relaunch, RunEnd, Stop, Unbuilt
from tfmemtop.events.commands import TRY_GRACE_S
from tfmemtop.events.unstarted import StartError
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
    make_plan,
)
from tfmemtop.experiments.fit.session import INTERRUPTED as STOPPED_BY_USER
from tfmemtop.experiments.fit.session import SessionFit
from tfmemtop.experiments.fit.text import advice, conclusion, result, table, trial_words
from tfmemtop.experiments.fit.tries import Tried
from tfmemtop.experiments.fit.watch import Goal
from tfmemtop.findings import probe as probe_text
from tfmemtop.findings.start_errors import unusable
from tfmemtop.home import writable_output_folder
from tfmemtop.probe.build import PROBE, REPLAY, build
from tfmemtop.settings import Growth

_TAIL = 256 * 1024  # bytes at the end of a try's output in which TensorFlow's message is searched
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
    smallest, largest, ceiling = bounds(arguments.settings, arguments.smallest, arguments.largest, machine)
    try:
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
            wanted=wanted,
        )
    except ImpossibleSearch as error:
        raise Refusal(str(error)) from error
    if wanted is not None and not plan.on_gpu and arguments.largest is None:
        raise Refusal("without a GPU, --largest needs --to: the size of the CPU's pool in which the value shall fit")
    if launch.probe:
        _build_for(launch)
    try:
        folder = writable_output_folder()
    except OSError:
        folder = Path(tempfile.gettempdir())
    path = folder / time.strftime(f"fit-%Y%m%d-%H%M%S-{os.getpid()}.log")
    output = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
    fit = SessionFit(plan)
    try:
        asyncio.run(_Fit(fit, launch, output).run())
    except StartError as error:
        raise Refusal(error.unstarted.text, error.unstarted.exit_code) from error
    except ValueError as error:
        raise Refusal(unusable(error)) from error
    finally:
        os.close(output)
    _print(fit, path, arguments)
    if fit.stopped == STOPPED_BY_USER:
        return INTERRUPTED
    if fit.search.unproved is not None:
        return _NO_EFFECT
    return 0 if fit.search.found is not None else 1


class _Fit:
    """Makes the tries of *search* as runs of one session, with a line on stderr for each.

    The script's output goes to the file descriptor *output*.
    """

    def __init__(self, search: SessionFit, launch: Launch, output: int) -> None:
        self._search = search
        self._launch = launch
        self._output = output
        self._begin = 0  # the byte at which the output of the present try begins
        self._told = True  # whether the line of the present try has its result
        self._events: asyncio.Queue[Event] = asyncio.Queue()

    async def run(self) -> None:
        """Make the tries. Enter this in the main thread of a process that has no other children.

        INT, TERM and HUP end the try that runs, and start no further one. The second of them kills it.

        Raises:
            StartError: the command cannot be started.
            ValueError: the settings are not valid.
            OSError: there is no place for the hook's socket.
        """
        with closing(open_session()) as folder:
            watch = Watch(self._launch, folder, output=self._output)
            watch.stream.listen(self._events.put_nowait)
            async with watch:
                with _on_interrupt(partial(self._interrupt, watch)):
                    commands = self._search.begin(0)
                    while self._search.going:
                        for command in commands:
                            await self._carry_out(command, watch)
                        commands = self._take(await self._events.get())
                    if not self._told:
                        note(self._search.stopped)
                    await watch.ending.end(TRY_GRACE_S)

    async def _carry_out(self, command: Command, watch: Watch) -> None:
        if isinstance(command, Stop):
            await watch.ending.end(command.grace_s)
        elif isinstance(command, Relaunch):
            self._announce()
            if watch.runs.number:
                await watch.ending.end(command.grace_s)
            try:
                run = await watch.prepare(command.argv, command.settings)
                # Read what the GPUs hold before the run. Where the driver lists no processes, the run's memory counts
                # as free once the GPUs hold no more than this again.
                with suppress(asyncio.TimeoutError):  # a notice reports that the driver does not answer
                    await asyncio.wait_for(watch.readings.devices(), DRIVER_WAIT_S)
                while not self._events.empty():
                    self._take(self._events.get_nowait())
                if self._search.going:  # else memory is still held, or the user has interrupted the search
                    watch.start(run)
            except (StartError, ValueError):
                note("not started")
                raise

    def _announce(self) -> None:
        search = self._search
        what = trial_words(search.trial, search.plan.wanted)
        name = f"try {search.number} of at most {search.plan.tries}: {what}"
        note(f"tfmemtop: {name} … ", end="")
        self._told = False
        self._begin = os.lseek(self._output, 0, os.SEEK_END)
        os.write(self._output, f"=== {name}\n".encode())

    def _take(self, event: Event) -> list[Command]:
        """Pass *event* to the search, and print the result of the try if it is over."""
        commands, tried = [], self._search.search.tried
        known = len(tried)
        if isinstance(event, RunEnd):
            # If the script crashed, only its output tells that a pool ran out of memory.
            commands += self._search.take(Output(t=event.t, run=event.run, text=self._tail()))
        commands += self._search.take(event)
        if len(tried) > known:
            note(result(tried[-1]))
            self._told = True
        return commands

    def _tail(self) -> str:
        end = os.lseek(self._output, 0, os.SEEK_END)
        return os.pread(self._output, _TAIL, max(self._begin, end - _TAIL)).decode(errors="replace")

    def _interrupt(self, watch: Watch) -> None:
        if self._search.stopped:
            watch.ending.hasten(0.0)
        self._search.stop()


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


def _print(fit: SessionFit, path: Path, arguments: FitArguments) -> None:
    search = fit.search
    sentences = conclusion(search, fit.stopped, fit.hint)
    if arguments.json:
        common: dict[str, object] = {
            "found": search.found is not None,
            "no_effect": search.unproved is not None,
            "settled": bool(search.tried) and search.settled,
            "stopped": fit.stopped or None,
            "sentences": sentences,
            "output": str(path),
            "tries": [_to_json(tried) for tried in search.tried],
        }
        print_json(common | search.figures())
        return
    wrapped = [part for line in sentences for part in textwrap.wrap(line, _WIDTH)]
    suggested = advice(fit.plan.suggested(search), arguments.command)
    lines = [line.text for line in table(search)]
    blocks = filter(None, (lines, wrapped, suggested, [f"What the script printed in these tries: {path}"]))
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
