"""The text about one process, apart from its figures."""

from collections.abc import Sequence

from tfmemtop.events import Census, OutOfMemory
from tfmemtop.reports import labels
from tfmemtop.units import UNKNOWN, format_bytes, format_count

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


def live_tensors(unseen: str) -> str:
    """Return the line about live tensors that were not looked for, with the reason."""
    return f"Live tensors: {unseen}"


def tensor(name: str) -> str:
    """Return the name of a live tensor; *name* may be empty."""
    return f"tensor {name}" if name else labels.UNNAMED_TENSOR


def since(started: str, elapsed: str | None) -> str:
    """Return when a process was started, and how long ago, if that is known."""
    return started if elapsed is None else f"{started}, {elapsed} ago"


def shares(held: str, sm: int | None, bandwidth: int | None) -> str:
    """Return what a process has of a GPU: memory, and percents of its time if they are known."""
    words = [f"{held} held"]
    words += [f"SM {sm} %"] if sm is not None else []
    words += [f"memory bandwidth {bandwidth} %"] if bandwidth is not None else []
    return ", ".join(words)


def allocator(name: str | None, gpu: int | None, *, ended: bool) -> str:
    """Return which allocator a logical device has, on which GPU, and whether it has ended."""
    place = f" on GPU {gpu}" if gpu is not None else ""
    return (name or labels.ALLOCATOR_UNKNOWN) + place + (", ended" if ended else "")


def raised(error: str) -> str:
    """Return the line about a call that raised *error*."""
    return f"raised {error}"


def in_effect(growth: bool | None, limit: str, allocator_name: str | None) -> str:
    """Return the settings of a logical device that are in effect."""
    grows = UNKNOWN if growth is None else labels.ON if growth else labels.OFF
    return f"{labels.GROWTH} {grows}, {labels.LIMIT} {limit}, {allocator_name or labels.ALLOCATOR_UNKNOWN}"


def has_ended(pid: int) -> str:
    """Return the line for process *pid*, of which nothing is known any more."""
    return f"Process {pid} has ended."


def look_again(cost_ms: float) -> str:
    """Return what another search for live tensors costs, by the cost of the last one in milliseconds."""
    return f"[T] looks for live tensors again. The last look took {cost_ms:.0f} ms."


def readings_left_out(count: int) -> str:
    """Return the line about readings that the hook dropped."""
    return f"{count} readings were left out, so that the script did not have to wait."


def environment_unread(error: str) -> str:
    """Return why the environment cannot be shown."""
    return f"It could not be read: {error.rstrip('.')}."


def failed_allocation(failure: OutOfMemory) -> str:
    """Return what was requested when memory ran out."""
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
    """Return the title above what is in use on a device that has no pool."""
    return f"What is in use on {device}"


def largest(*, tensors: bool) -> str:
    """Return the title above the largest variables; *tensors* is whether live tensors are among them."""
    return "The largest variables and live tensors" if tensors else "The largest variables"


def no_shares(reason: str) -> str:
    """Return the line for a GPU whose memory is not known by process."""
    return f"no figures for single processes: {reason}"


def settled(text: str) -> str:
    """Return the line about what tfmemtop set before TensorFlow made its devices."""
    return f"set by tfmemtop: {text}"


def not_inside(reason: str) -> str:
    """Return the line about why the hook is not in a process."""
    return f"Not inside this process: {reason}."


WITHOUT_LOCALS = "Local variables of running functions were not looked at. That takes Python 3.13 in the script."


def unseen_tensors(census: Census) -> str:
    """Return why, or where, live tensors were not looked for; empty if they were looked for everywhere."""
    if census.hidden is None:
        return ""
    return census.hidden.text.format(frozen=format_count(census.frozen or 0))
