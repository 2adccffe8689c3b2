"""``fit --largest``: the largest value of a number in the command that passes, by trying."""

import os
import textwrap
from pathlib import Path
from typing import Any

import msgspec

from tfmemtop.commands.saying import note, tell, tell_json
from tfmemtop.engine.process.launch import Launch
from tfmemtop.engine.tries import Tries, open_tries
from tfmemtop.events import Allocator, Event, HookAbsence
from tfmemtop.fit.largest import LargestSearch, TriedValue, Wanted
from tfmemtop.fit.plan import Plan
from tfmemtop.fit.stopped import Stopped, Why
from tfmemtop.tensorflow_text import tells_exhaustion
from tfmemtop.words.fit import outcome, result, stopped_words
from tfmemtop.words.fit_largest import conclusion, table, value_words

_WIDTH = 96
_TAIL = 256 * 1024  # bytes of a try's output in which TensorFlow's complaint is looked for


class FitLargest:
    """One search: which value comes next, how its try went, and what is said of it."""

    def __init__(self, wanted: Wanted, plan: Plan, launch: Launch) -> None:
        self.plan = plan
        self.launch = launch
        self.search = LargestSearch(wanted, plan.tries)
        self.stopped: Stopped | None = None
        """Why the search has not come to its end, if so."""
        self.hint: HookAbsence | None = None
        self._limit: int | None = None  # the allocator's own, where none is asked for

    @property
    def found(self) -> bool:
        """Whether a value was found."""
        return self.search.works is not None

    async def run(self, output: int) -> None:
        """Make the tries; what the script prints goes to the file descriptor *output*."""
        async with open_tries(self.launch, output) as tries:
            while not self.stopped and (value := self.search.next()) is not None:
                await self._try(tries, value, output)

    async def _try(self, tries: Tries, value: int, output: int) -> None:
        wanted, plan = self.search.wanted, self.plan
        heading = f"try {len(self.search.tried) + 1} of at most {plan.tries}: {value_words(wanted.name, value)}"
        note(f"tfmemtop: {heading} … ", end="")
        begin = os.lseek(output, 0, os.SEEK_END)
        os.write(output, f"=== {heading}\n".encode())
        watch = plan.watch(None)
        self._limit = None

        def take(event: Event) -> None:
            if isinstance(event, Allocator) and event.device.startswith(plan.kind) and event.limit is not None:
                self._limit = max(self._limit or 0, event.limit)
            watch.take(event)

        settings = plan.settings_of(plan.largest)
        try:
            reached = await tries.run(settings, take, watch.over, wanted.placed(self.launch.argv, value))
        except BaseException:
            note("not started")
            raise
        tried = watch.outcome(plan.largest, tries.now(), complained(output, begin), not reached)
        note(result(tried))
        if not reached:
            self.stopped = Stopped(Why.INTERRUPTED)
            return
        self.search.tell(TriedValue(value, tried, plan.largest or self._limit))
        if watch.hook_absence and tried.peak_in_use is None:
            self.hint = watch.hook_absence
        if tries.interrupted:
            self.stopped = Stopped(Why.INTERRUPTED)
        elif watch.held:
            self.stopped = Stopped(Why.MEMORY_HELD, held=watch.held)


def complained(output: int, begin: int) -> bool:
    """Whether TensorFlow wrote since *begin* that a pool ran out, which a crash leaves unsaid."""
    end = os.lseek(output, 0, os.SEEK_END)
    tail = os.pread(output, _TAIL, max(begin, end - _TAIL))
    return tells_exhaustion(tail.decode(errors="replace"))


def tell_largest(fit: FitLargest, path: Path, as_json: bool) -> None:
    """Print what was found, and the tries; *path* has what the script printed."""
    search = fit.search
    said = conclusion(search, fit.stopped, fit.hint)
    if as_json:
        growth = search.growth
        told = {
            "found": fit.found,
            "name": search.wanted.name,
            "value": search.works,
            "failed_above": search.fails,
            "limit": search.limit,
            "fixed_bytes": round(growth.fixed) if growth else None,
            "bytes_each": round(growth.each) if growth else None,
            "settled": search.settled,
            "stopped": stopped_words(fit.stopped) if fit.stopped else None,
            "sentences": said,
            "tries": [_to_json(one) for one in search.tried],
            "output": str(path),
        }
        tell_json(msgspec.json.format(msgspec.json.encode(told)))
        return
    blocks = [table(search.wanted.name, search.tried) if search.tried else []]
    blocks.append([part for line in said for part in textwrap.wrap(line, _WIDTH)])
    blocks.append([f"What the script printed in these tries: {path}"])
    tell(line for number, block in enumerate(filter(None, blocks)) for line in ([""] * bool(number) + block))


def _to_json(one: TriedValue) -> dict[str, Any]:
    fields = msgspec.structs.asdict(one.tried) | {"passed": one.tried.passed, "how": outcome(one.tried.how)}
    return {"value": one.value} | fields | {"limit": one.limit}
