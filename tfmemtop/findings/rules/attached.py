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

READ_ONLY = f"This process was not started by tfmemtop, which only reads it. {TO_HAVE_ALL}"
"""The reason why a key that would stop, relaunch or steer the process does nothing."""

_STATES: dict[OutsideState, tuple[str, str]] = {
    OutsideState.READING: ("its allocators are read from outside", ""),
    OutsideState.STOPPED: ("it is stopped, so its figures do not move", ""),
    OutsideState.NO_TENSORFLOW: ("TensorFlow is not in it, or not yet", "it is shown once it is there"),
    OutsideState.NO_DEVICES: (
        "TensorFlow {version} is imported and has not made its devices, which it does at its first operation",
        "its pools are shown once they are there",
    ),
    OutsideState.NO_POOL: (
        "TensorFlow {version} has made its devices, and none of its allocators keeps a pool",
        "cuda_malloc_async keeps none, nor does the CPU without TF_CPU_ALLOCATOR_USE_BFC=true",
    ),
    OutsideState.NO_TABLE: (
        "it has TensorFlow {detail}, whose layout in memory is not known",
        "2.16 to 2.22 are known; a newer tfmemtop may know it",
    ),
    OutsideState.NO_VERSION: (
        "its TensorFlow version is not known: there is no package, or more than one, beside its library",
        "start the script as tfmemtop -- COMMAND",
    ),
    OutsideState.REPLACED: (
        "its TensorFlow was installed anew while it runs, so which version is in its memory is not known",
        "the next start of the script can be read",
    ),
    OutsideState.NOT_FOUND: ("its allocators cannot be found: {detail}", ""),
    OutsideState.NOT_SOUND: (
        "its figures are not shown, since they cannot be right: {detail}",
        "they are looked for again",
    ),
    OutsideState.OTHER_USER: (
        "it belongs to another user, and its memory may not be read",
        "start tfmemtop as that user, or as root",
    ),
    OutsideState.ONLY_ANCESTORS: (
        "this system lets a process be read only by those that started it (kernel.yama.ptrace_scope is 1)",
        "as root: sysctl kernel.yama.ptrace_scope=0, or sudo tfmemtop attach {pid}; or start the script as "
        "tfmemtop -- COMMAND",
    ),
    OutsideState.ONLY_ROOT: (
        "this system lets only root read other processes (kernel.yama.ptrace_scope is 2)",
        "sudo tfmemtop attach {pid}; or start the script as tfmemtop -- COMMAND",
    ),
    OutsideState.NOBODY_MAY: (
        "this system lets nobody read other processes until it is started anew (kernel.yama.ptrace_scope is 3)",
        "start the script as tfmemtop -- COMMAND",
    ),
    OutsideState.NO_CAPABILITY: (
        "root lacks CAP_SYS_PTRACE here, as in most containers",
        "start the container with --cap-add=SYS_PTRACE, or start tfmemtop as the process's own user",
    ),
    OutsideState.PROTECTED: (
        "it forbids its own user to look into it, as programs with more rights do",
        "sudo tfmemtop attach {pid}",
    ),
    OutsideState.REFUSED: (
        "the kernel does not let its memory be read; a container or a security module may be why",
        "start tfmemtop where the process runs, or start the script as tfmemtop -- COMMAND",
    ),
    OutsideState.EXECUTED: ("it has become another program", "TensorFlow is looked for in that one"),
    OutsideState.GONE: ("it has ended", ""),
    OutsideState.LEFT: ("tfmemtop has left it, and it goes on", ""),
}


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
    text, remedy = _STATES[state]
    version = event.tensorflow or ""
    return TextAndRemedy(text.format(detail=detail, pid=event.pid, version=version), remedy.format(pid=event.pid))


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
