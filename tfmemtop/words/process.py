"""What the screen says about one process, apart from its figures."""

from collections.abc import Sequence

from tfmemtop.events import Census, OutOfMemory, Unseen
from tfmemtop.units import format_bytes, format_count

NO_REQUESTS = "Nothing so far: no call that sets growth, logical devices or visible devices."
NOT_SETTLED = "Not settled yet: TensorFlow initialises its devices at the first operation."
LAST_FIGURES = "ended; the figures are the last ones read"

HOOK_ENDED = "It has ended with the process."
HOOK_LOST = "It is gone; no more allocator readings come."
NOT_OURS: Sequence[str] = (
    "Not inside: tfmemtop did not start this process, and sees it from outside only.",
    "[a] in the table of tfmemtop without a command, or tfmemtop attach PID, reads its allocators. Start it as "
    "tfmemtop -- COMMAND to see its settings and its code too.",
)
NOT_IMPORTED = "Nothing was received from it: this process has not imported TensorFlow so far."

ENVIRONMENT_GONE = "The process has ended; its environment can no longer be read."
ENVIRONMENT_AWAITED = "being read …"
ENVIRONMENT_NOT_RECORDED = "It is not in this recording."
ENVIRONMENT_EMPTY = "It is empty."

FIRST_LOOK = (
    "[T] also looks for live tensors, among all of Python's objects. This pauses the script, usually for 50 to 200 ms."
)


def has_ended(pid: int) -> str:
    """Nothing is known of process *pid* any more."""
    return f"Process {pid} has ended."


def look_again(cost_ms: float) -> str:
    """What another look for live tensors costs, by the last one."""
    return f"[T] looks for live tensors again. The last look took {cost_ms:.0f} ms."


def readings_left_out(count: int) -> str:
    """The hook dropped readings."""
    return f"{count} readings were left out, so that the script did not have to wait."


def environment_unread(error: str) -> str:
    """Why the environment cannot be shown."""
    return f"It could not be read: {error.rstrip('.')}."


def failed_allocation(failure: OutOfMemory) -> str:
    """What was asked for when memory ran out."""
    asked = [f"asked for {format_bytes(failure.requested)}"] if failure.requested is not None else []
    asked += [f"by {failure.operation}"] if failure.operation else []
    asked += [f"on {failure.device}"] if failure.device else []
    return ", ".join(asked) or "an allocation failed for good"


UNFINISHED_IMPORT = "still being imported"
ASKED_FOR = "What the script asked for"
IN_EFFECT = "What took effect"
ON_GPUS = "On the GPUs"
OUT_OF_MEMORY = "Out of memory"


def in_use_on(device: str) -> str:
    """Over what is in use on a device that has no pool."""
    return f"What is in use on {device}"


def largest(*, tensors: bool) -> str:
    """Over the largest variables, and *tensors* if some are among them."""
    return "The largest variables and live tensors" if tensors else "The largest variables"


def no_shares(reason: str) -> str:
    """A GPU does not tell what each process has."""
    return f"no figures for single processes: {reason}"


def settled(text: str) -> str:
    """What tfmemtop has set before TensorFlow made its devices."""
    return f"set by tfmemtop: {text}"


def not_inside(reason: str) -> str:
    """Why the hook is not in a process."""
    return f"Not inside this process: {reason}."


_UNSEEN = {
    Unseen.ASYNCHRONOUS: "The script runs operations asynchronously. Asking a tensor for its shape would wait.",
    Unseen.REMOTE: "The script uses TensorFlow on other machines. Asking a tensor for its shape could wait.",
    Unseen.NOT_SHOWN: "Python's garbage collector does not show the tensors of this TensorFlow.",
    Unseen.FROZEN: "{frozen} objects that the script put aside with gc.freeze were not looked at.",
}


def unseen_tensors(census: Census) -> str:
    """Why live tensors were not looked for, or where not; empty if they were looked for everywhere."""
    if census.hidden is None:
        return census.unseen
    return _UNSEEN[census.hidden].format(frozen=format_count(census.frozen or 0))
