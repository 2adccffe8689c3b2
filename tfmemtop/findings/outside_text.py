"""The text about a process that is read from outside: how far the reading is, what prevents it, what is not known."""

from tfmemtop.events import Damage, Outside, OutsideState
from tfmemtop.events.damage import damage_text
from tfmemtop.findings.notice_texts import TextAndRemedy

S = OutsideState

FROM_OUTSIDE = "from outside"
"""The mark beside figures that were read from outside."""

HOOK_INSIDE = "hook put in"
"""The mark beside figures that a hook read that was put into the running process."""

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

_SAID: dict[OutsideState, tuple[str, str]] = {
    S.READING: ("its allocators are read from outside", ""),
    S.HOOKED: ("the hook is in it, put there while it ran, and reads it from within", ""),
    S.STOPPED: ("it is stopped, so its figures do not move", ""),
    S.NO_TENSORFLOW: ("TensorFlow is not in it, or not yet", "it is shown once it is there"),
    S.NO_DEVICES: (
        "TensorFlow {version} is imported and has not made its devices, which it does at its first operation",
        "its pools are shown once they are there",
    ),
    S.NO_POOL: (
        "TensorFlow {version} has made its devices, and none of its allocators keeps a pool",
        "cuda_malloc_async keeps none, nor does the CPU without TF_CPU_ALLOCATOR_USE_BFC=true",
    ),
    S.NO_TABLE: (
        "it has TensorFlow {detail}, whose layout in memory is not known",
        "2.16 to 2.22 are known; a newer tfmemtop may know it",
    ),
    S.NO_VERSION: (
        "its TensorFlow version cannot be read: no metadata and no headers lie beside its library",
        "start the script as tfmemtop -- COMMAND",
    ),
    S.REPLACED: (
        "its TensorFlow was installed anew while it runs, so which version is in its memory is not known",
        "the next start of the script can be read",
    ),
    S.BUILT_OTHERWISE: (
        "its TensorFlow is built into {detail}, whose layout is not known",
        "TensorFlow's own packages for Python can be read",
    ),
    S.NOT_64_BIT: ("it is a 32-bit process", "only 64-bit processes can be read"),
    S.NOT_FOUND: ("its allocators cannot be found: {detail}", ""),
    S.NOT_SOUND: ("its figures are not shown, since they cannot be right: {detail}", "they are looked for again"),
    S.OTHER_USER: (
        "it belongs to another user, and its memory may not be read",
        "start tfmemtop as that user, or as root",
    ),
    S.ONLY_ANCESTORS: (
        "this system lets a process be read only by those that started it (kernel.yama.ptrace_scope is 1)",
        "as root: sysctl kernel.yama.ptrace_scope=0, or sudo tfmemtop attach {pid}; or start the script as "
        "tfmemtop -- COMMAND",
    ),
    S.ONLY_ROOT: (
        "this system lets only root read other processes (kernel.yama.ptrace_scope is 2)",
        "sudo tfmemtop attach {pid}; or start the script as tfmemtop -- COMMAND",
    ),
    S.NOBODY_MAY: (
        "this system lets nobody read other processes until it is started anew (kernel.yama.ptrace_scope is 3)",
        "start the script as tfmemtop -- COMMAND",
    ),
    S.NO_CAPABILITY: (
        "root lacks CAP_SYS_PTRACE here, as in most containers",
        "start the container with --cap-add=SYS_PTRACE, or start tfmemtop as the process's own user",
    ),
    S.PROTECTED: (
        "it forbids its own user to look into it, as programs with more rights do",
        "sudo tfmemtop attach {pid}",
    ),
    S.REFUSED: (
        "the kernel does not let its memory be read; a container or a security module may be why",
        "start tfmemtop where the process runs, or start the script as tfmemtop -- COMMAND",
    ),
    S.EXECUTED: ("it has become another program", "TensorFlow is looked for in that one"),
    S.GONE: ("it has ended", ""),
    S.LEFT: ("tfmemtop has left it, and it goes on", ""),
}


def say_state(event: Outside) -> TextAndRemedy:
    """Return how far the reading has come, or what prevents it, and what helps: two texts without a full stop."""
    return say_outside(event.state, event.detail, event.pid, event.tensorflow, event.damage)


def say_outside(
    state: OutsideState, detail: str, pid: int, tensorflow: str | None, damage: Damage | None = None
) -> TextAndRemedy:
    """Return the same as :func:`say_state`, for the fields of the event."""
    if state is S.NO_TENSORFLOW and detail:
        return TextAndRemedy(f"TensorFlow is not in it, but in its child {detail}", f"tfmemtop attach {detail}")
    if state is S.GONE and detail:
        first = detail.partition(",")[0]
        return TextAndRemedy(f"it has ended; what it started goes on: process {detail}", f"tfmemtop attach {first}")
    if damage is not None:
        detail = damage_text(damage, detail)
    text, remedy = _SAID[state]
    version = tensorflow or ""
    return TextAndRemedy(text.format(detail=detail, pid=pid, version=version), remedy.format(pid=pid))


def sentence(event: Outside) -> str:
    """Return the same as :func:`say_state`, as one sentence or two."""
    text, remedy = say_state(event)
    return f"Process {event.pid}: {text}." + (f" What helps: {remedy}." if remedy else "")
