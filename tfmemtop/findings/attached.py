"""The finding for a process that tfmemtop did not start: how far its memory can be read from outside."""

from collections.abc import Iterator

from tfmemtop.events import Damage, Injection, InjectionState, Outside, OutsideState
from tfmemtop.events.damage import damage_text
from tfmemtop.findings.finding import Finding, Said, Severity, joined
from tfmemtop.findings.notices import TextAndRemedy
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
NOT_KNOWN_OF_BEFORE = "Not known: what came before the hook, such as the lines of earlier calls."
NO_REQUESTS = "Not known: the script's own calls are seen only by a hook, and none is in this process."
NOT_DONE = "tfmemtop only reads it: it is neither stopped nor relaunched from here, and goes on when you leave."
NOT_DONE_WITHIN = "tfmemtop neither stops nor relaunches it, and it goes on when you leave."
TO_HAVE_ALL = "tfmemtop -- COMMAND shows all of that."

READ_ONLY = f"This process was not started by tfmemtop, which only reads it. {TO_HAVE_ALL}"
"""The reason why a key that would stop, relaunch or steer the process does nothing."""

_STATES: dict[OutsideState, tuple[str, str]] = {
    OutsideState.READING: ("its allocators are read from outside", ""),
    OutsideState.HOOKED: ("the hook is in it, put there while it ran, and reads it from within", ""),
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
        "its TensorFlow version cannot be read: no metadata and no headers lie beside its library",
        "start the script as tfmemtop -- COMMAND",
    ),
    OutsideState.REPLACED: (
        "its TensorFlow was installed anew while it runs, so which version is in its memory is not known",
        "the next start of the script can be read",
    ),
    OutsideState.BUILT_OTHERWISE: (
        "its TensorFlow is built into {detail}, whose layout is not known",
        "TensorFlow's own packages for Python can be read",
    ),
    OutsideState.NOT_64_BIT: ("it is a 32-bit process", "only 64-bit processes can be read"),
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
    return say_outside(event.state, event.detail, event.pid, event.tensorflow, event.damage)


def say_outside(
    state: OutsideState, detail: str, pid: int, tensorflow: str | None, damage: Damage | None = None
) -> TextAndRemedy:
    """Return the same as :func:`say_state`, for the fields of the event."""
    if state is OutsideState.NO_TENSORFLOW and detail:
        return TextAndRemedy(f"TensorFlow is not in it, but in its child {detail}", f"tfmemtop attach {detail}")
    if state is OutsideState.GONE and detail:
        first = detail.partition(",")[0]
        return TextAndRemedy(f"it has ended; what it started goes on: process {detail}", f"tfmemtop attach {first}")
    if damage is not None:
        detail = damage_text(damage, detail)
    text, remedy = _STATES[state]
    version = tensorflow or ""
    return TextAndRemedy(text.format(detail=detail, pid=pid, version=version), remedy.format(pid=pid))


def reading_sentence(event: Outside) -> str:
    """Return the same as :func:`say_state`, as one sentence or two."""
    text, remedy = say_state(event)
    return f"Process {event.pid}: {text}." + (f" What helps: {remedy}." if remedy else "")


_FIRST = (3, 14)

_START = "start the script as tfmemtop -- COMMAND"

_INJECTIONS: dict[InjectionState, tuple[str, str]] = {
    InjectionState.ASKED: (
        "its Python was asked to load the hook and has not done so yet: its main thread is in one long "
        "call, or an audit hook of the script forbids it",
        "",
    ),
    InjectionState.ARRIVED: ("the hook is in it", ""),
    InjectionState.ALREADY: ("the hook is in it already, for another tfmemtop", "tfmemtop ls names that session"),
    InjectionState.OLD_PYTHON: (
        "its Python is {detail}; only Python 3.14 and newer lets others run code in it, and tfmemtop uses no debugger",
        _START,
    ),
    InjectionState.NOT_PYTHON: ("its program is {detail}, and not a Python interpreter", _START),
    InjectionState.OTHER_USER: (
        "it belongs to another user",
        "start tfmemtop as that user; if only root may read it: sysctl kernel.yama.ptrace_scope=0, as root",
    ),
    InjectionState.ELSEWHERE: (
        "it sees other files than tfmemtop does, as a process in a container does",
        "install and start tfmemtop in there",
    ),
    InjectionState.DISABLED: ("its Python was started or built so that no other program can run code in it", _START),
    InjectionState.NOT_ALLOWED: (
        "the kernel does not let tfmemtop write to its memory",
        "the permission to read its memory includes the permission to write to it: see tfmemtop help outside",
    ),
    InjectionState.REPLACED: (
        "the script has replaced {detail}, as gevent does, and the hook would call the replacement",
        _START,
    ),
    InjectionState.FAILED: ("the hook could not be put into it: {detail}", ""),
}


def say_injection(state: InjectionState, detail: str) -> TextAndRemedy:
    """Return how far the injection has come, or what prevents it, and what helps: two texts without a full stop."""
    text, remedy = _INJECTIONS[state]
    return TextAndRemedy(text.format(detail=detail), remedy)


def refusal(pid: int, state: InjectionState, detail: str) -> str:
    """Return why the hook cannot be put into process *pid*, in one line."""
    said = say_injection(state, detail)
    helps = f"; what helps: {said.remedy}" if said.remedy else ""
    outside = f"from outside it is read by: tfmemtop attach {pid}"
    return f"the hook cannot be put into process {pid}: {said.text}{helps}; {outside}"


def injection_sentence(event: Injection) -> str:
    """Return the same as :func:`say_injection`, as one sentence or two."""
    said = say_injection(event.state, event.detail)
    text = (
        f"{said.text[:1].upper()}{said.text[1:]}." if event.state.under_way else f"The hook is not in it: {said.text}."
    )
    return text + (f" What helps: {said.remedy}." if said.remedy else "")


def offer(event: Outside) -> str:
    """Return the offer to put the hook into a process that is read from outside.

    Empty where its Python is too old for that, or TensorFlow cannot be read in it.
    """
    version = tuple(int(part) for part in event.python.split(".") if part.isdigit())
    if not event.state.inside or version < _FIRST:
        return ""
    return f"With the hook more is known: tfmemtop attach {event.pid} --inject puts it into the process."


_FINE = (OutsideState.READING, OutsideState.STOPPED, OutsideState.NO_DEVICES)


class ReadFromOutside(Finding, frozen=True):
    """A process is read from outside, or cannot be.

    ``told`` is the event that reports how far the reading has come. ``injection`` reports on putting the hook into the
    process, where that was requested.
    """

    aside = True  # a report shows this with the run itself

    told: Outside
    injection: Injection | None = None

    @property
    def severity(self) -> Severity:
        refused = self.injection is not None and not self.injection.state.under_way
        return Severity.WARNING if refused or (self.told.state not in _FINE and self.blocked) else Severity.INFO

    @property
    def blocked(self) -> bool:
        """Whether something prevents the reading that the process itself cannot change, so that waiting is useless."""
        return not self.told.state.may_change and self.told.state not in _OVER

    @property
    def said(self) -> Said:
        if self.told.state is OutsideState.HOOKED:
            return Said(reading_sentence(self.told), figures=f"{NOT_KNOWN_OF_BEFORE} {NOT_DONE_WITHIN}")
        injected = injection_sentence(self.injection) if self.injection else ""
        figures = joined(NOT_KNOWN, NOT_DONE, "" if self.injection else offer(self.told))
        headline = joined(reading_sentence(self.told), injected)
        return Said(headline, figures="" if self.blocked or self.told.detail else figures)


_OVER = (OutsideState.GONE, OutsideState.LEFT)


def read_from_outside(state: State) -> Iterator[ReadFromOutside]:
    """Find the processes of the newest run that are read from outside, or that ended with children still running."""
    for pid, process in state.processes.items():
        told = process.outside
        if told is not None and of_run(state, pid) and (told.state not in _OVER or told.detail):
            yield ReadFromOutside(told, process.injection)
