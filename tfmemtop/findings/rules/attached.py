"""The finding for a process that tfmemtop did not start: how far its memory can be read from outside."""

from collections.abc import Iterator

from tfmemtop.events import Outside, OutsideState
from tfmemtop.events.damage import damage_text
from tfmemtop.findings.finding import Finding, Said, Severity, joined
from tfmemtop.findings.rules import rule
from tfmemtop.findings.rules.notices import TextAndRemedy
from tfmemtop.state import State
from tfmemtop.state.lookup import of_run

FROM_OUTSIDE = "from outside"
"""The mark beside figures that were read from outside."""

WENT_ON = "it went on when tfmemtop left"
"""The end of a run that tfmemtop had not started, and that went on when tfmemtop left it."""

HEADING = "Read from outside"

NOT_KNOWN = (
    "Not known from outside: the settings that the script asked for, its steps and lines, who holds the memory, its "
    "variables and tensors, and the text of an out-of-memory error."
)
NO_REQUESTS = "Not known: the script's own calls are seen only by a hook, and none is in this process."
NOT_DONE = "tfmemtop only reads it: it is neither stopped nor relaunched from here, and goes on when you leave."
TO_HAVE_ALL = "tfmemtop -- COMMAND shows all of that."

NO_ALLOCATIONS = "allocations are not seen from outside; to record them, start it as tfmemtop -- COMMAND"
READ_ONLY = "tfmemtop only reads this process, which it did not start. To steer it, start it as tfmemtop -- COMMAND."
"""The reason why a key that would stop, relaunch or steer the process does nothing."""


def say_state(event: Outside) -> TextAndRemedy:
    """Return how far the reading has come, or what prevents it, and what helps: two texts without a full stop."""
    state, detail = event.state, event.detail
    if state is OutsideState.NO_TENSORFLOW and detail:
        return TextAndRemedy(f"TensorFlow is not in it, but in its child {detail}", f"tfmemtop attach {detail}")
    if state is OutsideState.GONE and detail:
        first = detail.partition(",")[0]
        return TextAndRemedy(f"it has ended; what it started goes on: process {detail}", f"tfmemtop attach {first}")
    if event.damage is not None:
        detail = damage_text(event.damage, detail)
    text = state.text.format(detail=detail, version=event.tensorflow or "")
    return TextAndRemedy(text, state.remedy.format(pid=event.pid))


def reading_sentence(event: Outside) -> str:
    """Return the same as :func:`say_state`, as one sentence or two."""
    text, remedy = say_state(event)
    return f"Process {event.pid}: {text}." + (f" What helps: {remedy}." if remedy else "")


class ReadFromOutside(Finding, frozen=True):
    """A process is read from outside, or cannot be.

    ``told`` is the event that reports how far the reading has come.
    """

    aside = True  # a report shows this with the run itself

    told: Outside

    @property
    def severity(self) -> Severity:
        return Severity.WARNING if self.blocked else Severity.INFO

    @property
    def blocked(self) -> bool:
        """Whether something prevents the reading that the process itself cannot change, so that waiting is useless."""
        return not self.told.state.may_change and self.told.state not in _OVER

    @property
    def said(self) -> Said:
        figures = "" if self.blocked or self.told.detail else joined(NOT_KNOWN, NOT_DONE)
        return Said(reading_sentence(self.told), figures=figures)


_OVER = (OutsideState.GONE, OutsideState.LEFT)


@rule(80)
def read_from_outside(state: State) -> Iterator[ReadFromOutside]:
    """Find the processes of the newest run that are read from outside, or that ended with children still running."""
    for pid, process in state.processes.items():
        told = process.outside
        if told is not None and of_run(state, pid) and (told.state not in _OVER or told.detail):
            yield ReadFromOutside(told)
