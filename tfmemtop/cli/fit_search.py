"""The searches of ``fit``: each chooses limits or values, tries the command with them, and prints a line for each."""

import asyncio
import os
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from tfmemtop import boot
from tfmemtop.cli.checks.interpreter import Interpreter, Start, ask, resolve
from tfmemtop.cli.output import note, say
from tfmemtop.engine.process.launch import Launch
from tfmemtop.engine.sources.helper_process import HelperProcess
from tfmemtop.engine.tries import Tries, open_tries
from tfmemtop.events import Allocator, Event, HookAbsence, Unbuilt
from tfmemtop.events.unstarted import StartError
from tfmemtop.experiments.fit import largest_text as values
from tfmemtop.experiments.fit import text as limits
from tfmemtop.experiments.fit.largest import LargestSearch, Prediction, TriedValue, Wanted
from tfmemtop.experiments.fit.plan import Plan
from tfmemtop.experiments.fit.search import Search, Tried
from tfmemtop.experiments.fit.session import Stopped, Why
from tfmemtop.experiments.fit.watch import TryWatch
from tfmemtop.experiments.whatif.expected import LONGEST_S, WORKER, Expectations, answered
from tfmemtop.findings import probe_text as words
from tfmemtop.probe.build import PROBE, REPLAY, build
from tfmemtop.tensorflow_text import tells_exhaustion

_TAIL = 256 * 1024  # bytes at the end of a try's output in which TensorFlow's message is searched
_LOOK_S = 0.25


class FitSearch(ABC):
    """A search that runs the command of *launch* again and again. A subclass chooses the next try."""

    search: Search | LargestSearch

    def __init__(self, plan: Plan, launch: Launch) -> None:
        self.plan = plan
        self.launch = launch
        self.stopped: Stopped | None = None
        """The reason why the search stopped before its end; ``None`` if it did not."""
        self.hint: HookAbsence | None = None
        """The reason why the hook was not loaded, if a try showed no memory."""

    async def run(self, output: int) -> None:
        """Make the tries. The script's output goes to the file descriptor *output*."""
        async with open_tries(self.launch, output) as tries:
            while not self.stopped and await self._try_next(tries, output):
                pass

    @property
    @abstractmethod
    def found(self) -> bool:
        """Whether a limit or a value was found."""

    @abstractmethod
    def figures(self) -> dict[str, Any]:
        """Return the result and the tries, for JSON."""

    @abstractmethod
    def table(self) -> list[str]:
        """Return the table of the tries as lines."""

    @abstractmethod
    def conclusion(self) -> list[str]:
        """Return the result as sentences."""

    @abstractmethod
    async def _try_next(self, tries: Tries, output: int) -> bool:
        """Make the next try. Return whether there was one."""

    async def _attempt(
        self,
        tries: Tries,
        output: int,
        what: str,
        limit: int | None,
        watch: TryWatch,
        take: Callable[[Event], None],
        argv: list[str] | None = None,
    ) -> Tried | None:
        """Run the command, or *argv*, under *limit* bytes, and print a line about it; return how the try went.

        Return ``None`` if the user interrupted it. *what* names the limit or value that is tried. *watch* decides when
        the try is over and what its result is. *take* receives each event.

        Raises:
            StartError: the command cannot be started.
            ValueError: the settings are not valid.
        """
        name = f"try {len(self.search.tried) + 1} of at most {self.plan.tries}: {what}"
        note(f"tfmemtop: {name} … ", end="")
        begin = os.lseek(output, 0, os.SEEK_END)
        os.write(output, f"=== {name}\n".encode())
        try:
            reached = await tries.run(self.plan.settings_of(limit), take, watch.over, argv, trace=watch.traces)
        except (StartError, ValueError):
            note("not started")
            raise
        tried = watch.outcome(limit, tries.now(), _complained(output, begin), not reached)
        note(limits.result(tried))
        if not reached or tries.interrupted:
            self.stopped = Stopped(Why.INTERRUPTED)
        elif watch.held:
            self.stopped = Stopped(Why.MEMORY_HELD, held=watch.held)
        if not reached:
            return None
        if watch.hook_absence and tried.peak_in_use is None:
            self.hint = watch.hook_absence
        return tried


def _complained(output: int, begin: int) -> bool:
    """Return whether TensorFlow wrote, after the offset *begin* of *output*, that a pool ran out of memory.

    If the script crashed, no event reports that.
    """
    end = os.lseek(output, 0, os.SEEK_END)
    tail = os.pread(output, _TAIL, max(begin, end - _TAIL))
    return tells_exhaustion(tail.decode(errors="replace"))


def _to_json(tried: Tried) -> dict[str, Any]:
    how = {"passed": tried.passed, "result": tried.how.result, "how": limits.outcome(tried.how)}
    return msgspec.structs.asdict(tried) | how


class FitLimit(FitSearch):
    """The search for the smallest limit."""

    def __init__(self, plan: Plan, launch: Launch) -> None:
        super().__init__(plan, launch)
        self.search: Search = plan.search()

    @property
    def found(self) -> bool:
        return self.search.limit is not None

    def figures(self) -> dict[str, Any]:
        search = self.search
        return {
            "limit": search.limit,
            "failed_below": search.failed_below,
            "advice": search.advice,
            "settled": bool(search.tried) and search.settled,
            "tries": [_to_json(tried) for tried in search.tried],
        }

    def table(self) -> list[str]:
        return limits.table(self.search.tried) if self.search.tried else []

    def conclusion(self) -> list[str]:
        return limits.conclusion(self.search, self.stopped, self.hint)

    async def _try_next(self, tries: Tries, output: int) -> bool:
        if not self.search.has_next():
            return False
        limit, done = self.search.next(), self.search.tried
        watch = self.plan.watch(done[0] if done else None)
        tried = await self._attempt(tries, output, limits.limit_words(limit), limit, watch, watch.take)
        if tried is not None:
            self.search.tell(tried)
        return True


class FitLargest(FitSearch):
    """The search for the largest value of a number in the command."""

    def __init__(self, wanted: Wanted, plan: Plan, launch: Launch) -> None:
        super().__init__(plan, launch)
        self.search: LargestSearch = LargestSearch(wanted, plan.tries)
        self._expectations = Expectations(plan.kind)

    @property
    def found(self) -> bool:
        return self.search.works is not None

    def figures(self) -> dict[str, Any]:
        search, growth = self.search, self.search.told_growth
        return {
            "name": search.wanted.name,
            "value": search.works,
            "failed_above": search.fails,
            "limit": search.limit,
            "fixed_bytes": round(growth.fixed) if growth else None,
            "bytes_each": round(growth.each) if growth else None,
            "predicted": search.first_prediction and search.first_prediction._asdict(),
            "settled": search.settled,
            "tries": [{"value": one.value} | _to_json(one.tried) | {"limit": one.limit} for one in search.tried],
        }

    def table(self) -> list[str]:
        return values.table(self.search.wanted.name, self.search.tried) if self.search.tried else []

    def conclusion(self) -> list[str]:
        return values.conclusion(self.search, self.stopped, self.hint)

    async def _try_next(self, tries: Tries, output: int) -> bool:
        value = self.search.next()
        if value is None:
            return False
        wanted, plan = self.search.wanted, self.plan
        watch = plan.watch(None, traces=True)
        self._expectations.begin()
        reported: list[int] = []  # the limits that the allocator reports, for tries without a given limit

        def take(event: Event) -> None:
            if isinstance(event, Allocator) and event.device.startswith(plan.kind) and event.limit is not None:
                reported.append(event.limit)
            self._expectations.take(event)
            watch.take(event)

        argv = wanted.placed(self.launch.argv, value)
        what = values.value_words(wanted.name, value)
        tried = await self._attempt(tries, output, what, plan.largest, watch, take, argv)
        if tried is not None:
            self.search.tell(TriedValue(value, tried, plan.largest or max(reported, default=None)))
            if tried.passed and tried.at_least is not None:
                self._expectations.passed(value)
                await self._expect(tries)
        return True

    async def _expect(self, tries: Tries) -> None:
        """Replay the tries up to now with other values, and store what the replay predicts."""
        search = self.search
        if search.limit is None or search.settled:
            return
        asked = self._expectations.request(search.limit, search.wanted.lowest, search.wanted.highest)
        if asked is not None and (expected := answered(await _answer(asked, tries))) is not None:
            search.expect(Prediction(expected.surely, expected.likely, expected.at_most, expected.values))


async def _answer(asked: bytes, tries: Tries) -> bytes | None:
    """Send *asked* to the worker process, and return its answer.

    ``None`` if the worker takes too long or cannot be started, or if *tries* are interrupted.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[bytes | None] = loop.create_future()
    with tempfile.TemporaryFile() as file:
        file.write(asked)
        file.seek(0)
        try:
            worker = HelperProcess(loop, boot.command(WORKER), LONGEST_S, answer.set_result, file)
        except OSError:
            return None
    while not answer.done():
        await asyncio.wait({answer}, timeout=_LOOK_S)
        if tries.interrupted:
            worker.end()
            return None
    return answer.result()


def build_for(launch: Launch) -> None:
    """Build the probe and the replay for the TensorFlow of the launch's command, with a line for each on stderr.

    Otherwise they would be built during the first tries, and the probe would come too late to record these. Nothing is
    built, and nothing printed, if they exist already, if the launch leaves the probe out, or if the command's Python
    cannot be found, because it is started by a shell script, for example.
    """
    if not launch.probe:
        return
    cwd = Path(launch.cwd)
    start = resolve(launch.argv, launch.environment, cwd)
    python = ask(start, cwd) if isinstance(start, Start) else start
    if not isinstance(python, Interpreter) or python.folder is None or python.tensorflow is None:
        return
    for product, title in ((PROBE, words.PROBE), (REPLAY, words.REPLAY)):
        begun: list[float] = []

        def begin(title: str = title, begun: list[float] = begun) -> None:
            begun.append(time.monotonic())
            note(f"tfmemtop: {words.building_text(title, python.tensorflow or '')} … ", end="")

        built = build(Path(python.folder), python.tensorflow, product, begin)
        if begun:
            note(words.built_text(time.monotonic() - begun[0], done=built.unbuilt is None))
        if built.unbuilt is not None:
            say(words.no_prediction(msgspec.convert(built.unbuilt, Unbuilt), title))
            return
