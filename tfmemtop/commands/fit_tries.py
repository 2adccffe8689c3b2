"""What ``fit`` does in each try, whatever it searches for, and how it prints what it found."""

import os
import textwrap
from collections.abc import Callable

from tfmemtop.commands.saying import note, tell
from tfmemtop.engine.process.launch import Launch
from tfmemtop.engine.process.unstarted import StartError
from tfmemtop.engine.tries import Tries
from tfmemtop.events import Event, HookAbsence
from tfmemtop.fit.plan import Plan
from tfmemtop.fit.search import Tried
from tfmemtop.fit.stopped import Stopped, Why
from tfmemtop.fit.watch import Watch
from tfmemtop.tensorflow_text import tells_exhaustion
from tfmemtop.words import usage
from tfmemtop.words.fit import result

_WIDTH = 96
_TAIL = 256 * 1024  # bytes of a try's output in which TensorFlow's complaint is looked for


class Trying:
    """A search by tries of the command of *launch*; which try comes next is a subclass's matter."""

    def __init__(self, plan: Plan, launch: Launch) -> None:
        self.plan = plan
        self.launch = launch
        self.stopped: Stopped | None = None
        """Why the search has not come to its end, if so."""
        self.hint: HookAbsence | None = None

    async def attempt(
        self,
        tries: Tries,
        output: int,
        name: str,
        limit: int | None,
        watch: Watch,
        take: Callable[[Event], None],
        argv: list[str] | None = None,
    ) -> Tried | None:
        """Run the command, or *argv*, under *limit*, with a line about it; ``None`` if the user interrupted it.

        *name* says which number and try it is. *output* is the file descriptor to which the script prints, *watch*
        decides how the try goes, and *take* gets each event.

        Raises:
            StartError: the command cannot be started.
            ValueError: the settings make no sense.
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
        """The name of the try after *done* others; *words* say what is tried."""
        return usage.try_heading(done + 1, self.plan.tries, words)


def tell_blocks(table: list[str], sentences: list[str], *more: list[str]) -> None:
    """Print a table, sentences and *more* blocks of lines, each apart from the one before."""
    wrapped = [part for line in sentences for part in textwrap.wrap(line, _WIDTH)]
    blocks = filter(None, (table, wrapped, *more))
    tell(line for number, block in enumerate(blocks) for line in ([""] * bool(number) + block))


def _complained(output: int, begin: int) -> bool:
    """Whether TensorFlow wrote since *begin* that a pool ran out, which a crash leaves unsaid."""
    end = os.lseek(output, 0, os.SEEK_END)
    tail = os.pread(output, _TAIL, max(begin, end - _TAIL))
    return tells_exhaustion(tail.decode(errors="replace"))
