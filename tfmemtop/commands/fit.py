"""``tfmemtop fit -- COMMAND…``: the smallest memory limit under which the script still works, by trying."""

import asyncio
import os
import textwrap
import time
from pathlib import Path

import msgspec

from tfmemtop.commands.arguments import Arguments
from tfmemtop.commands.launching import ask_machine, make_launch
from tfmemtop.commands.limits import bounds
from tfmemtop.commands.saying import note, tell, tell_json
from tfmemtop.engine.folders import output_folder
from tfmemtop.engine.launch import Launch
from tfmemtop.engine.run import StartError
from tfmemtop.engine.tries import Tries
from tfmemtop.fit.plan import Plan, check, make_plan
from tfmemtop.fit.report import advice, conclusion, limit_words, result, table
from tfmemtop.fit.watch import Goal, complains
from tfmemtop.options import Refusal

_INTERRUPTED = 130
_WIDTH = 96
_TAIL = 256 * 1024  # bytes of a try's output in which TensorFlow's complaint is looked for


class _Fit:
    """One search: which try comes next, under which settings, and what is said of it."""

    def __init__(self, plan: Plan, launch: Launch) -> None:
        self.plan = plan
        self.search = plan.search()
        self.stopped = ""
        """Why the search has not come to its end, if so."""
        self.hint = ""
        self.launch = launch

    async def run(self, output: int) -> None:
        async with Tries(self.launch, output) as tries:
            while self.search.has_next() and not self.stopped:
                await self._try(tries, output)

    async def _try(self, tries: Tries, output: int) -> None:
        limit, done = self.search.next(), self.search.tried
        first = done[0] if done else None
        heading = f"try {len(done) + 1} of at most {self.plan.tries}: {limit_words(limit)}"
        note(f"tfmemtop: {heading} … ", end="")
        begin = os.lseek(output, 0, os.SEEK_END)
        os.write(output, f"=== {heading}\n".encode())
        watch = self.plan.watch(first)
        try:
            reached = await tries.run(self.plan.settings_of(limit), watch.take, watch.over)
        except BaseException:
            note("not started")
            raise
        tried = watch.outcome(limit, tries.now(), _complained(output, begin), not reached)
        note(result(tried))
        if not reached:
            self.stopped = "interrupted"
            return
        self.search.tell(tried)
        if watch.hooked_out and tried.peak_in_use is None:
            self.hint = watch.hooked_out
        if tries.interrupted:
            self.stopped = "interrupted"
        elif watch.held:
            self.stopped = f"the next try would not have had all the memory: {watch.held}"


def run(arguments: Arguments) -> int:
    """Try, with a line a try on stderr; print what was found. 0 if a limit was found, 1 if not, 130 if interrupted.

    Raises:
        Refusal: the script cannot be started, or a setting makes no sense.
    """
    machine = ask_machine()
    try:
        check(arguments.settings)
    except ValueError as error:
        raise Refusal(str(error)) from error
    launch = make_launch(arguments, 80, 24)
    smallest, largest, ceiling = bounds(arguments, machine)
    plan = make_plan(
        launch.argv,
        launch.settings,
        has_gpus=bool(machine.uuids),
        host_memory=machine.host_memory,
        goal=Goal(arguments.seconds, arguments.steps),
        tries=arguments.tries,
        smallest=smallest,
        largest=largest,
        ceiling=ceiling,
    )
    fit = _Fit(plan, launch)
    path = output_folder() / time.strftime(f"fit-%Y%m%d-%H%M%S-{os.getpid()}.log")
    output = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        asyncio.run(fit.run(output))
    except StartError as error:
        raise Refusal(str(error), error.exit_code) from error
    except ValueError as error:
        raise Refusal(str(error)) from error
    finally:
        os.close(output)
    _print(fit, path, arguments)
    if fit.stopped == "interrupted":
        return _INTERRUPTED
    return 1 if fit.search.limit is None else 0


def _print(fit: _Fit, path: Path, arguments: Arguments) -> None:
    search = fit.search
    growth = fit.plan.settings.growth if fit.plan.on_gpu else None
    option = "--cpu-pool" if arguments.settings.gpus == () else "--memory-limit"
    said = conclusion(search, fit.stopped, fit.hint)
    if arguments.json:
        told = {
            "found": search.limit is not None,
            "limit": search.limit,
            "failed_below": search.failed_below,
            "advice": search.advice,
            "settled": bool(search.tried) and search.settled,
            "stopped": fit.stopped or None,
            "sentences": said,
            "tries": search.tried,
            "output": str(path),
        }
        tell_json(msgspec.json.format(msgspec.json.encode(told)))
        return
    blocks = [table(search.tried) if search.tried else []]
    blocks.append([part for line in said for part in textwrap.wrap(line, _WIDTH)])
    blocks.append(advice(search, on_gpu=fit.plan.on_gpu, option=option, growth=growth, command=arguments.command))
    blocks.append([f"What the script printed in these tries: {path}"])
    tell(line for number, block in enumerate(filter(None, blocks)) for line in ([""] * bool(number) + block))


def _complained(output: int, begin: int) -> bool:
    """Whether TensorFlow wrote since *begin* that a pool ran out, which a crash leaves unsaid."""
    end = os.lseek(output, 0, os.SEEK_END)
    tail = os.pread(output, _TAIL, max(begin, end - _TAIL))
    return complains(tail.decode(errors="replace"))
