"""``fit --largest``: the largest value of a number in the command that passes, by trying."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from tfmemtop import boot
from tfmemtop.cli import usage
from tfmemtop.cli.fit_tries import Trying, tell_blocks
from tfmemtop.cli.saying import tell_json
from tfmemtop.engine.process.launch import Launch
from tfmemtop.engine.sources.helper_process import HelperProcess
from tfmemtop.engine.tries import Tries, open_tries
from tfmemtop.events import Allocator, Event
from tfmemtop.experiments.fit.largest import LargestSearch, Prediction, TriedValue, Wanted
from tfmemtop.experiments.fit.largest_text import conclusion, table, value_words
from tfmemtop.experiments.fit.plan import Plan
from tfmemtop.experiments.fit.text import outcome, stopped_words
from tfmemtop.experiments.whatif.expected import LONGEST_S, WORKER, Expectations, answered

_LOOK_S = 0.25


class FitLargest(Trying):
    """The search for the largest value: which try comes next."""

    def __init__(self, wanted: Wanted, plan: Plan, launch: Launch) -> None:
        super().__init__(plan, launch)
        self.search = LargestSearch(wanted, plan.tries)
        self._expectations = Expectations(plan.kind)

    @property
    def found(self) -> bool:
        """Whether a value was found."""
        return self.search.works is not None

    async def run(self, output: int) -> None:
        """Make the tries. The script's output goes to the file descriptor *output*."""
        async with open_tries(self.launch, output) as tries:
            while not self.stopped and (value := self.search.next()) is not None:
                await self._try(tries, value, output)

    async def _try(self, tries: Tries, value: int, output: int) -> None:
        wanted, plan = self.search.wanted, self.plan
        watch = plan.watch(None, traces=True)
        self._expectations.begin()
        limits: list[int] = []  # the limits that the allocator reports, for tries without a given limit

        def take(event: Event) -> None:
            if isinstance(event, Allocator) and event.device.startswith(plan.kind) and event.limit is not None:
                limits.append(event.limit)
            self._expectations.take(event)
            watch.take(event)

        name = self.heading(len(self.search.tried), value_words(wanted.name, value))
        argv = wanted.placed(self.launch.argv, value)
        tried = await self.attempt(tries, output, name, plan.largest, watch, take, argv)
        if tried is not None:
            self.search.tell(TriedValue(value, tried, plan.largest or max(limits, default=None)))
            if tried.passed and tried.at_least is not None:
                self._expectations.passed(value)
                await self._expect(tries)

    async def _expect(self, tries: Tries) -> None:
        """Replay the tries up to now with other values, and store what the replay predicts."""
        search = self.search
        if search.limit is None or search.settled:
            return
        asked = self._expectations.request(search.limit, search.wanted.lowest, search.wanted.highest)
        if asked is not None and (expected := answered(await _said(asked, tries))) is not None:
            search.expect(Prediction(expected.surely, expected.likely, expected.at_most, expected.values))


async def _said(asked: bytes, tries: Tries) -> bytes | None:
    """Send *asked* to the worker process, and return its answer.

    ``None`` if the worker takes too long or cannot be started, or if *tries* are interrupted.
    """
    loop = asyncio.get_running_loop()
    said: asyncio.Future[bytes | None] = loop.create_future()
    with tempfile.TemporaryFile() as file:
        file.write(asked)
        file.seek(0)
        try:
            beside = HelperProcess(loop, boot.command(WORKER), LONGEST_S, said.set_result, file)
        except OSError:
            return None
    while not said.done():
        await asyncio.wait({said}, timeout=_LOOK_S)
        if tries.interrupted:
            beside.end()
            return None
    return said.result()


def tell_largest(fit: FitLargest, path: Path, as_json: bool) -> None:
    """Print the result and the tries. *path* is the file with the script's output."""
    search = fit.search
    said = conclusion(search, fit.stopped, fit.hint)
    if as_json:
        growth = search.told_growth
        told = {
            "found": fit.found,
            "name": search.wanted.name,
            "value": search.works,
            "failed_above": search.fails,
            "limit": search.limit,
            "fixed_bytes": round(growth.fixed) if growth else None,
            "bytes_each": round(growth.each) if growth else None,
            "predicted": search.first_prediction and search.first_prediction._asdict(),
            "settled": search.settled,
            "no_effect": search.unproved is not None,
            "stopped": stopped_words(fit.stopped) if fit.stopped else None,
            "sentences": said,
            "tries": [_to_json(one) for one in search.tried],
            "output": str(path),
        }
        tell_json(msgspec.json.format(msgspec.json.encode(told)))
        return
    kept = [usage.printed_in(str(path))]
    tell_blocks(table(search.wanted.name, search.tried) if search.tried else [], said, kept)


def _to_json(one: TriedValue) -> dict[str, Any]:
    how = {"passed": one.tried.passed, "result": one.tried.how.result, "how": outcome(one.tried.how)}
    fields = msgspec.structs.asdict(one.tried) | how
    return {"value": one.value} | fields | {"limit": one.limit}
