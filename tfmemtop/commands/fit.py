"""``tfmemtop fit -- COMMAND…``: the smallest memory limit under which the script still works, by trying."""

import asyncio
import os
import sys
import textwrap
import time
from pathlib import Path

import msgspec

from tfmemtop.commands.arguments import Arguments
from tfmemtop.commands.launching import ask_machine, make_launch
from tfmemtop.commands.limits import bounds
from tfmemtop.engine.launch import Launch, output_folder
from tfmemtop.engine.run import StartError
from tfmemtop.engine.tries import Tries
from tfmemtop.fit.report import advice, finding, limit_words, result, table
from tfmemtop.fit.search import Search
from tfmemtop.fit.watch import Goal, Watch
from tfmemtop.options import Refusal
from tfmemtop.settings import Settings

_INTERRUPTED = 130
_WIDTH = 96
_TAIL = 256 * 1024  # bytes of a try's output in which TensorFlow's complaint is looked for
_COMPLAINTS = (b"ran out of memory trying to allocate", b"OOM when allocating", b"failed to allocate memory")


class _Fit:
    """One search: which try comes next, under which settings, and what is said of it."""

    def __init__(self, arguments: Arguments, launch: Launch, search: Search, *, on_gpu: bool, host_memory: int) -> None:
        self.search = search
        self.stopped = ""
        """Why the search has not come to its end, if so."""
        self.hint = ""
        self.launch = launch
        self.goal = Goal(arguments.seconds, arguments.steps)
        self.on_gpu = on_gpu
        self._tries = arguments.tries
        self._host_memory = host_memory

    async def run(self, output: int) -> None:
        async with Tries(self.launch, output) as tries:
            while self.search.has_next() and not self.stopped:
                await self._try(tries, output)

    async def _try(self, tries: Tries, output: int) -> None:
        limit, done = self.search.next(), self.search.tried
        first = done[0] if done else None
        heading = f"try {len(done) + 1} of at most {self._tries}: {limit_words(limit)}"
        _say(f"tfmemtop: {heading} … ", end="")
        begin = os.lseek(output, 0, os.SEEK_END)
        os.write(output, f"=== {heading}\n".encode())
        watch = Watch("GPU" if self.on_gpu else "CPU", self.goal, first)
        try:
            reached = await tries.run(self._settings(limit), watch.take, watch.over)
        except BaseException:
            _say("not started")
            raise
        tried = watch.outcome(limit, tries.now(), _complained(output, begin), not reached)
        _say(result(tried))
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

    def _settings(self, limit: int | None) -> Settings:
        if self.on_gpu:
            return msgspec.structs.replace(self.launch.settings, memory_limit=limit)
        # Without its own pool the CPU has no allocator that could tell its peak.
        return msgspec.structs.replace(self.launch.settings, cpu_pool=limit or self._host_memory)


def run(arguments: Arguments) -> int:
    """Try, with a line a try on stderr; print what was found. 0 if a limit was found, 1 if not, 130 if interrupted.

    Raises:
        Refusal: the script cannot be started, or a setting makes no sense.
    """
    machine = ask_machine()
    on_gpu = bool(machine.uuids) and arguments.settings.gpus != ()
    if arguments.settings.allocator == "cuda_malloc_async":
        raise Refusal("fit needs the allocator bfc: what is given to cuda_malloc_async as a limit does not limit it")
    launch = make_launch(arguments, 80, 24)
    if on_gpu and arguments.growth is None:
        # Without it the pool is always as large as the limit, and the first try would take the whole GPU.
        launch = msgspec.structs.replace(launch, settings=msgspec.structs.replace(launch.settings, growth="on"))
    smallest, largest, ceiling = bounds(arguments, machine)
    search = Search(tries=arguments.tries, smallest=smallest, largest=largest, ceiling=ceiling)
    fit = _Fit(arguments, launch, search, on_gpu=on_gpu, host_memory=machine.host_memory)
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
    return 1 if search.limit is None else 0


def _print(fit: _Fit, path: Path, arguments: Arguments) -> None:
    search = fit.search
    growth = fit.launch.settings.growth if fit.on_gpu else None
    option = "--cpu-pool" if arguments.settings.gpus == () else "--memory-limit"
    said = finding(search) if search.tried else ["Nothing was found: no try has come to its end."]
    if fit.stopped:
        said.append(f"The search has not come to its end: {fit.stopped}.")
    if fit.hint:
        said.append(f"The hook could not get into the script: {fit.hint}.")
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
        print(msgspec.json.format(msgspec.json.encode(told)).decode())
        return
    blocks = [table(search.tried) if search.tried else [], [textwrap.fill(line, _WIDTH) for line in said]]
    blocks.append(advice(search, on_gpu=fit.on_gpu, option=option, growth=growth, command=arguments.command))
    blocks.append([f"What the script printed in these tries: {path}"])
    print("\n\n".join("\n".join(block) for block in blocks if block))


def _complained(output: int, begin: int) -> bool:
    """Whether TensorFlow wrote since *begin* that a pool ran out, which a crash leaves unsaid."""
    end = os.lseek(output, 0, os.SEEK_END)
    tail = os.pread(output, _TAIL, max(begin, end - _TAIL))
    return any(complaint in tail for complaint in _COMPLAINTS)


def _say(text: str, end: str = "\n") -> None:
    print(text, end=end, file=sys.stderr, flush=True)
