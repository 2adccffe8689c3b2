"""What ``fit`` does in each try, for both kinds of search, and how it prints the result."""

import os
import textwrap
from collections.abc import Callable

from tfmemtop.cli import usage
from tfmemtop.cli.saying import note, tell
from tfmemtop.engine.process.launch import Launch
from tfmemtop.engine.tries import Tries
from tfmemtop.events import Event, HookAbsence
from tfmemtop.events.unstarted import StartError
from tfmemtop.experiments.fit.plan import Plan
from tfmemtop.experiments.fit.search import Tried
from tfmemtop.experiments.fit.stopped import Stopped, Why
from tfmemtop.experiments.fit.text import result
from tfmemtop.experiments.fit.watch import TryWatch
from tfmemtop.tensorflow_text import tells_exhaustion

_WIDTH = 96
_TAIL = 256 * 1024  # bytes at the end of a try's output in which TensorFlow's message is searched


class Trying:
    """A search that tries the command of *launch* again and again. A subclass chooses the next try."""

    def __init__(self, plan: Plan, launch: Launch) -> None:
        self.plan = plan
        self.launch = launch
        self.stopped: Stopped | None = None
        """The reason why the search stopped before its end; ``None`` if it did not."""
        self.hint: HookAbsence | None = None
        """The reason why the hook was not loaded, if a try showed no memory."""

    async def attempt(
        self,
        tries: Tries,
        output: int,
        name: str,
        limit: int | None,
        watch: TryWatch,
        take: Callable[[Event], None],
        argv: list[str] | None = None,
    ) -> Tried | None:
        """Run the command, or *argv*, under *limit* bytes, and print a line about it; return how the try went.

        Return ``None`` if the user interrupted it. *name* is the heading of the try. The script's output goes to the
        file descriptor *output*. *watch* decides when the try is over and what its result is. *take* receives each
        event.

        Raises:
            StartError: the command cannot be started.
            ValueError: the settings are not valid.
        """
        note(f"tfmemtop: {name} … ", end="")
        begin = os.lseek(output, 0, os.SEEK_END)
        os.write(output, f"=== {name}\n".encode())
        try:
            reached = await tries.run(self.plan.settings_of(limit), take, watch.over, argv, trace=watch.traces)
        except (StartError, ValueError):
            note("not started")
            raise
        tried = watch.outcome(limit, tries.now(), _complained(output, begin), not reached)
        note(result(tried))
        if not reached or tries.interrupted:
            self.stopped = Stopped(Why.INTERRUPTED)
        elif watch.held:
            self.stopped = Stopped(Why.MEMORY_HELD, held=watch.held)
        if not reached:
            return None
        if watch.hook_absence and tried.peak_in_use is None:
            self.hint = watch.hook_absence
        return tried

    def heading(self, done: int, words: str) -> str:
        """Return the heading of the try after *done* others. *words* name the limit or value that is tried."""
        return usage.try_heading(done + 1, self.plan.tries, words)


def tell_blocks(table: list[str], sentences: list[str], *more: list[str]) -> None:
    """Print a table, sentences and *more* blocks of lines, with an empty line between them."""
    wrapped = [part for line in sentences for part in textwrap.wrap(line, _WIDTH)]
    blocks = filter(None, (table, wrapped, *more))
    tell(line for number, block in enumerate(blocks) for line in ([""] * bool(number) + block))


def _complained(output: int, begin: int) -> bool:
    """Return whether TensorFlow wrote, after the offset *begin* of *output*, that a pool ran out of memory.

    If the script crashed, no event reports that.
    """
    end = os.lseek(output, 0, os.SEEK_END)
    tail = os.pread(output, _TAIL, max(begin, end - _TAIL))
    return tells_exhaustion(tail.decode(errors="replace"))
