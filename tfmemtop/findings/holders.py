"""The text about the holders of memory: kinds, groupings, and why a process has no window."""

import re
from collections.abc import Sequence

from tfmemtop.events import Damage, Holders
from tfmemtop.events.damage import damage_text
from tfmemtop.findings.names import PASSED, named_spot, own_path
from tfmemtop.state.attribution import Kind
from tfmemtop.state.holders import By, Part
from tfmemtop.units import counted, format_bytes, format_short, spoken

KINDS = {
    Kind.VARIABLES: "weights and other variables",
    Kind.OPTIMIZER: "the optimizer's slots and what it computes with",
    Kind.ACTIVATIONS: "results of layers and other operations",
    Kind.GRADIENTS: "results of the backward pass",
    Kind.LOSS: "what the loss computes with",
    Kind.INPUT: "batches on their way to the model",
    Kind.WORKSPACE: "scratch memory of one operation",
    Kind.TENSORS: "eager tensors, which the script or a gradient tape keeps",
    Kind.XLA: "the buffer of a compiled cluster",
    Kind.RESULTS: "results of compiled calls that have ended, other than known variables and tensors",
    Kind.ROUNDING: "the part of a chunk beyond the XLA buffer in it",
    Kind.BEFORE: "allocated before the window, other than known variables",
    Kind.UNKNOWN: "allocations without a name, or not recorded",
}
"""An explanation of each kind."""

PEAK_BY = "peak made by"
USED_BEFORE = "in use before it"
COST = "slowed the script by"
"""Names of a window's figures: what made its peak, what was in use before the window, how much it slowed the script."""

UNKNOWN_TIME = "a moment"
TITLE = "Who holds the memory"
LIFETIMES = "Buffers, from allocation to release"
SUM = "sum"
UNKNOWN = "unknown"
NO_SHAPE = "no shape known"

WHAT_THIS_IS = (
    "In a window, tfmemtop records each allocation of one step of the script, with its operation. This screen then "
    "shows who holds the memory at the peak of that step. A window takes as long as the step, 3 s at most."
)

_CALL = re.compile(r"^(?:(?:Stateful)?PartitionedCall(?:_\d+)?/)+")
_NAMELESS = {
    Kind.BEFORE: "from before the window",
    Kind.UNKNOWN: UNKNOWN,
    Kind.XLA: "XLA's buffers",
    Kind.RESULTS: "results of compiled calls",
    Kind.ROUNDING: "rounding of XLA's buffers",
    Kind.TENSORS: "eager tensors",
}
"""The names of rows of which only the kind is known. Rows of other kinds have the kind's name."""
_COPIES = {"_EagerConst": "copies of arrays", "SameWorkerRecvDone": "copies from other devices"}
"""The names of operations that TensorFlow itself makes, where they mean something else to a reader."""


def windowless_text(told: Holders | None) -> str:
    """Return why there is no window, or what is wrong with its file; empty where nothing is known."""
    if told is None:
        return ""
    if told.damage is not None:
        return unread_text(told.damage, told.detail)
    return "" if told.windowless is None else told.windowless.text


def unread_text(damage: Damage, detail: str) -> str:
    """Return what is wrong with a window's file."""
    return f"the file of the window cannot be read: {damage_text(damage, detail)}"


def kind(of: Kind) -> str:
    """Return the name of a kind, one word."""
    return "XLA" if of is Kind.XLA else of.value


def group(by: By) -> str:
    """Return the name of a grouping, one word: what each row is."""
    return "operation" if by is By.OPERATION else by.value


def operation(name: str) -> str:
    """Return TensorFlow's *name* of an operation without the prefix that all operations of a function have."""
    return _CALL.sub("", name)


def holder(name: str, of: Kind, by: By = By.LAYER, *, whole: bool = True) -> str:
    """Return the name of a row in a table that is grouped *by* something.

    *of* is the row's kind. *whole* is whether the name of a line contains the file's whole path.
    """
    if not name and by is By.SHAPE and of not in _NAMELESS:
        return NO_SHAPE
    if PASSED.fullmatch(name):
        return "an argument of a call"
    if name in _COPIES:
        return _COPIES[name]
    return named_spot(operation(own_path(name)), whole=whole or by is not By.LINE) if name else nameless(of)


def buffer(part: Part) -> str:
    """Return the short name of a buffer: of its variable or tensor in Python, else its layer and operation."""
    operation_name = operation(part.operation)
    if part.layer:
        operation_name = f"{part.layer}/{operation_name.rpartition('/')[2]}"
    return holder(part.python_name or operation_name, part.kind)


def nameless(of: Kind) -> str:
    """Return the name of a row of which only the kind is known."""
    return _NAMELESS.get(of) or kind(of)


def unknown(lost: int, nameless: bool) -> str:
    """Return the name of the row of unknown bytes, with the reason; *lost* is a number of events."""
    reasons = ["no name"] * nameless + [f"{counted(lost, 'event')} lost"] * (lost > 0)
    return f"unknown: {', '.join(reasons or ['not recorded'])}"


def title(place: str, pid: int) -> str:
    """Return the screen's title."""
    return f"Holders of {place}, process {pid}"


def which(number: int, of: int, age_s: float) -> str:
    """Return which of the known windows is shown, and its age. *number* counts from 0."""
    return f"window {number + 1} of {of}, {spoken(age_s)} old"


def peak_notes(peak: int, operations: Sequence[str]) -> tuple[str, ...]:
    """Return the notes at the peak of a step's graph, the longest first.

    *operations* are the forms of the name of the operation that made the peak, the longest first.
    """
    size = f"peak {format_bytes(peak)}"
    return (*(f"{size}, made by {operation}" for operation in operations), size)


def lost(events: int) -> str:
    """Return how many events of a window are missing."""
    return f"{counted(events, 'event')} lost"


def moment(total: int, at_ms: str | None) -> str:
    """Return how many bytes are in use at a moment of the step, or at its peak."""
    where = "at the peak" if at_ms is None else f"{at_ms} into the window"
    return f"{format_bytes(total)} {where}"


def happened(change: int, operation: str | None) -> str:
    """Return what an event did; *change* is in bytes."""
    did = "takes" if change > 0 else "gives back"
    return f"{operation or 'an operation without a name'} {did} {format_bytes(abs(change))}"


def table_title(moment: str, by: By) -> str:
    """Return the title of the table."""
    return f"{moment}, by {group(by)}"


def top_title(total: int, higher: int | None, age_s: float) -> str:
    """Return the title above the largest rows on the main screen. *higher* is the pool's peak if it is another one."""
    if higher is None:
        return f"Holders of {format_short(total)} at the pool's peak {spoken(age_s)} ago; B shows all"
    return f"Holders of {format_short(total)} {spoken(age_s)} ago; pool's peak {format_short(higher)}"


def lower_peak(higher: int) -> str:
    """Return the warning that the pool had a peak of *higher* bytes, outside the window that is shown."""
    return f"not the pool's peak of {format_bytes(higher)}"


def seen(first: int, last: int, of: int) -> str:
    """Return which lines of a table are visible."""
    return f"{first} to {last} of {of}"


def sum_told(rows: int, named: int, unknown: int) -> str:
    """Return the number of rows, and if bytes are *unknown*, the named and the unknown bytes that they add up to."""
    return counted(rows, "row") + (f" {format_bytes(named)} + unknown {format_bytes(unknown)}" if unknown else "")


NOW_ASKED = "The next step will be recorded."
NOW_ENDED = "This process has ended: no window can be recorded any more."
NOW_IN_REPLAY = "This is a recording: it has only the windows that were recorded, and no new one can be asked for."
NOT_RECORDED_THEN = "No allocations were recorded at that time: this is the peak of the recorded step nearest to it."
NO_FACES = "It is not known who holds these cells: no window has been recorded of this pool. [B] says why."


def faces(free: str, cell: str) -> str:
    """Return the legend of a map with letters."""
    return f" a cell is {cell}   capital: all in use, small: partly, {free} free"


def faces_age(age_s: float) -> str:
    """Return the line about the window that the holders of a map's cells come from, where no cell is chosen."""
    return f"Who holds a cell is known from a window {_from_map(age_s)}."


def face_unknown(age_s: float) -> str:
    """Return the line about a chosen cell that is in use now and that was free in the window."""
    return f"unknown: in the window, {_from_map(age_s)}, this cell was free"


def _from_map(age_s: float) -> str:
    return f"{spoken(abs(age_s))} {'before' if age_s >= 0 else 'after'} this map"


def lies_since(clock: str, window: int, *, stays: bool) -> str:
    """Return since when a tensor has had its place: a time of the run, or the number of an earlier window.

    Without *stays*, it is freed in each step and gets the same place again.
    """
    if not stays:
        return "in each step, at this place"
    return f"since {clock}" if clock else f"since window {window}" if window else "from before the windows"


def free(below: str, above: str) -> str:
    """Return the line about a free cell: the holders *below* and *above* it, each empty if there is none."""
    if below and above:
        return f"free, between {below} and {above}"
    if below or above:
        return f"free, {'above' if below else 'below'} {below or above}; nothing else stays in use here"
    return "free; nothing stays in use here"
