"""Who holds memory: kinds, groupings, why a window was opened, and why there is none."""

import re
from collections.abc import Sequence

from tfmemtop.events import Closed, Damage, Holders, Opened, Windowless
from tfmemtop.state.attribution import Kind
from tfmemtop.state.holders import By, Part
from tfmemtop.state.no_holders import Lacking, NoHolders
from tfmemtop.state.owners import Guess
from tfmemtop.units import format_bytes
from tfmemtop.words.counting import counted, spoken
from tfmemtop.words.damage import damage_text
from tfmemtop.words.places import named_spot
from tfmemtop.words.probe import probe_remedy, probe_text

_KINDS = {
    Kind.VARIABLES: "variables",
    Kind.GRADIENTS: "gradients",
    Kind.OPTIMIZER: "optimizer",
    Kind.ACTIVATIONS: "activations",
    Kind.LOSS: "loss",
    Kind.INPUT: "input",
    Kind.WORKSPACE: "workspace",
    Kind.TENSORS: "tensors",
    Kind.XLA: "XLA",
    Kind.ROUNDING: "rounding",
    Kind.BEFORE: "before",
    Kind.UNKNOWN: "unknown",
}

KINDS = {
    Kind.VARIABLES: "weights and other variables",
    Kind.OPTIMIZER: "the optimizer's slots and what it computes with",
    Kind.ACTIVATIONS: "results of layers, kept for the backward pass",
    Kind.GRADIENTS: "results of the backward pass",
    Kind.LOSS: "what the loss computes with",
    Kind.INPUT: "batches on their way to the model",
    Kind.WORKSPACE: "scratch memory of one operation",
    Kind.TENSORS: "tensors that Python holds",
    Kind.XLA: "the buffer of a compiled cluster",
    Kind.ROUNDING: "the part of a chunk beyond the XLA buffer in it",
    Kind.BEFORE: "allocated before the window, other than known variables",
    Kind.UNKNOWN: "allocations without a name, or not recorded",
}
"""What each kind is."""

PEAK_BY = "peak made by"
USED_BEFORE = "in use before it"
COST = "slowed the script by"
"""Figures of a window: what made its peak, what lay there before it, how long it held up the script."""

_GROUPS = {
    By.LAYER: "layer",
    By.OPERATION: "operation",
    By.KIND: "kind",
    By.SHAPE: "shape",
    By.LINE: "line",
}

_OPENED = {
    Opened.START: "as the script began",
    Opened.INTERVAL: "by schedule",
    Opened.PEAK: "because the peak in use rose",
    Opened.FINDING: "for a finding",
    Opened.ASKED: "because the user asked for it",
    Opened.WAITING: "because an allocation waited for room",
}

_CLOSED = {
    Closed.STEP: "",
    Closed.TIME: "no whole step: the window reached its time limit",
    Closed.EVENTS: "no whole step: the window reached its limit of events",
    Closed.PROFILER: "no whole step: the script began to profile",
    Closed.EXIT: "no whole step: the script ended",
    Closed.DISK: "no whole step: the window's file could not be written",
    Closed.MEMORY: "no whole step: no memory was left for the window",
}

UNKNOWN_TIME = "a moment"
TITLE = "Who holds the memory"
SUM = "sum"
NO_NAME = "no name"
NO_SHAPE = "no shape known"
GUESSED = {Guess.STEP: "~ name of an earlier step", Guess.SIZE: "~ by its size"}
"""What a name with ~ rests on."""

WHAT_THIS_IS = (
    "In a window, tfmemtop records each allocation of one step of the script, with its operation. This screen then "
    "shows who holds the memory at the peak of that step. A window takes as long as the step, 3 s at most."
)

_CALL = re.compile(r"^(?:(?:Stateful)?PartitionedCall(?:_\d+)?/)+")
_ARGUMENT = re.compile(r"filter_traceback\.<locals>\.error_handler\.<locals>\.args\b.*")
"""The path of what is held by nothing but TensorFlow's own function around each call of it."""
_NAMELESS = {
    Kind.BEFORE: "before the window",
    Kind.UNKNOWN: "unknown",
    Kind.XLA: "XLA's buffers",
    Kind.ROUNDING: "rounding of XLA's buffers",
    Kind.TENSORS: "tensors that Python holds",
}
"""What a row is called whose kind is all that is known; others are called as their kind."""

_LACKING = {
    Lacking.NO_POOL: "No pool is known: TensorFlow has not made one in a process that tfmemtop started.",
    Lacking.FORGOTTEN: "Nothing is known of this process any more.",
    Lacking.NOT_BFC: "The allocator cuda_malloc_async does not tell who holds its memory. TensorFlow's own, BFC, does.",
    Lacking.NO_PROBE: "Windows are recorded by the probe, a small native library, and it is not in use here",
    Lacking.PROBE_COMING: "Windows are recorded by the probe, a small native library. It is being built or loaded.",
    Lacking.PROFILER: "The script is profiling. No window can be recorded until it stops.",
    Lacking.ENDED: "The process ended before a window was recorded.",
    Lacking.NOT_ASKED: "No window is opened automatically: the session was started with --holders-interval 0.",
    Lacking.ENDED_NOT_ASKED: "The process ended before a window was asked for. No window is opened "
    "automatically: the session was started with --holders-interval 0.",
    Lacking.NOT_YET: "No window has been recorded yet. The first one ends with the script's third step.",
}

_HELPS = {
    Lacking.NOT_BFC: "[A] chooses BFC for the next run.",
    Lacking.PROFILER: "The next window comes after that.",
    Lacking.NOT_ASKED: "[n] asks for a window now.",
    Lacking.NOT_YET: "[n] asks for a window now.",
}


_WINDOWLESS = {
    Windowless.NO_PROBE: "the probe, which records allocations, is not in this process",
    Windowless.PROFILER_SERVER: "the script has started a profiler server, so that it may be profiled at any time",
    Windowless.SERVER: "the script serves other machines, by which it may be profiled at any time",
    Windowless.PROFILER: "the script's own profiler is on",
    Windowless.NO_FOLDER: "the session's folder is not known in this process",
    Windowless.NO_EVENTS: "the probe cannot record the events of this TensorFlow",
    Windowless.NO_POOL: "there is no pool of TensorFlow's BFC allocator in this process",
}


def windowless_text(told: Holders | None) -> str:
    """Why there is no window, or what is wrong with its file; empty where nothing is known."""
    if told is None:
        return ""
    if told.damage is not None:
        return unread_text(told.damage, told.detail)
    return (told.missing or "") if told.windowless is None else why_windowless(told.windowless)


def unread_text(damage: Damage, detail: str) -> str:
    """What is wrong with a window's file."""
    return f"the file of the window cannot be read: {damage_text(damage, detail)}"


def why_windowless(why: Windowless) -> str:
    """Why there is no window: one clause."""
    return _WINDOWLESS[why]


def none_text(none: NoHolders) -> tuple[str, str]:
    """Why a pool has no window, and what helps; the latter may be empty."""
    if none.reason is Lacking.REFUSED:
        return f"There is no window: {windowless_text(none.told)}.", ""
    text = _LACKING[none.reason]
    if none.reason is Lacking.NO_PROBE:
        known = probe_text(none.probe) if none.probe else ""
        return f"{text}{f': {known}' if known else ''}.", probe_remedy(none.probe) if none.probe else ""
    return text, _HELPS.get(none.reason, "")


def kind(of: Kind) -> str:
    """One word."""
    return _KINDS[of]


def group(by: By) -> str:
    """One word: what the rows stand for."""
    return _GROUPS[by]


def opened(why: Opened) -> str:
    """Why a window was opened: a clause."""
    return _OPENED[why]


def closed(why: Closed) -> str:
    """Why a window that has no whole step ended; empty if it ended with one."""
    return _CLOSED[why]


def operation(name: str) -> str:
    """TensorFlow's *name* of an operation without what all operations of a function begin with."""
    return _CALL.sub("", name)


def holder(name: str, of: Kind, by: By = By.LAYER, *, whole: bool = True, likely: bool = False) -> str:
    """A row's name, in a table of rows *by* something; a line's with its *whole* path if it shall be.

    One with ``~`` is *likely* only.
    """
    if likely:
        return f"~{holder(name, of, by, whole=whole)}"
    if not name and by is By.SHAPE and of not in _NAMELESS:
        return NO_SHAPE
    if _ARGUMENT.fullmatch(name):
        return "an argument of a call"
    return named_spot(operation(name), whole=whole or by is not By.LINE) if name else nameless(of)


def nameless(of: Kind) -> str:
    """What a row is called of which only the kind is known."""
    return _NAMELESS.get(of, _KINDS[of])


def nameless_part(part: Part) -> str:
    """What an allocation is called of which neither the operation nor a name in Python is known."""
    return nameless(part.kind) if part.guess else NO_NAME


def unknown(lost: int, nameless: bool) -> str:
    """What the row of unknown bytes is called, with the reason."""
    reasons = ["no name"] * nameless + [f"{counted(lost, 'event')} lost"] * (lost > 0)
    return f"unknown: {', '.join(reasons or ['not recorded'])}"


def title(place: str, pid: int) -> str:
    """The screen's title."""
    return f"Holders of {place}, process {pid}"


def which(number: int, of: int, age_s: float) -> str:
    """Which of the known windows is shown, *number* from 0 on, and how old it is."""
    return f"window {number + 1} of {of}, {spoken(age_s)} old"


def window_name(number: int, of: int) -> str:
    """What a window is called beside another: the first, the newest, or by its number, from 0 on."""
    return "first" if number == 0 else "newest" if number == of - 1 else f"window {number + 1}"


def peak_notes(peak: int, operations: Sequence[str], name: str) -> tuple[str, ...]:
    """What stands at the peak of a step's drawing, by its operation written in several lengths, the longest first."""
    size = f"{name + ': ' if name else ''}peak {format_bytes(peak)}"
    return (*(f"{size}, made by {operation}" for operation in operations), size)


def lost(events: int) -> str:
    """Events of a window that are missing."""
    return f"{counted(events, 'event')} lost"


def moment(total: int, at_ms: str | None) -> str:
    """What is in use at a moment of the step, or at its peak."""
    where = "at the peak" if at_ms is None else f"{at_ms} into the window"
    return f"{format_bytes(total)} {where}"


def happened(change: int, operation: str | None) -> str:
    """What an event did."""
    did = "takes" if change > 0 else "gives back"
    return f"{operation or 'an operation without a name'} {did} {format_bytes(abs(change))}"


def table_title(moment: str, by: By) -> str:
    """The title of the table."""
    return f"{moment}, by {_GROUPS[by]}"


def changes_title(by: By) -> str:
    """The title of the table of two windows."""
    return f"What differs at the peaks, by {_GROUPS[by]}"


def top_title(total: int, by: By, age_s: float) -> str:
    """What stands over the largest rows on the main screen."""
    return f"Holders of {format_bytes(total)} at the peak, by {_GROUPS[by]}, {spoken(age_s)} ago; B shows all"


def seen(first: int, last: int, of: int) -> str:
    """Which lines of a table are in view."""
    return f"{first} to {last} of {of}"


def sum_told(rows: int, named: int, unknown: int) -> str:
    """What the rows add up to."""
    return counted(rows, "row") + (f" {format_bytes(named)} + unknown {format_bytes(unknown)}" if unknown else "")


NOW_ASKED = "The next step will be recorded."
NOW_ENDED = "This process has ended: no window can be recorded any more."
NOW_IN_REPLAY = "This is a recording: it has only the windows that were recorded, and no new one can be asked for."
NOTHING_BESIDE = "There is only one window so far: there is no other to compare it with."

NO_FACES = "It is not known who holds these cells: no window has been recorded of this pool. [B] says why."


def faces(free: str, cell: str) -> str:
    """What the letters of a map tell."""
    return f" a cell is {cell}   capital: all in use, small: partly, {free} free"


def faces_age(age_s: float) -> str:
    """Of which moment it is known who holds a map's cells, where no cell is chosen."""
    return f"Who holds a cell is known from a window {spoken(age_s)} before this map."


def face_unknown(age_s: float) -> str:
    """The chosen cell is in use, and nobody was there in the window."""
    return f"unknown: in the window, {spoken(age_s)} before this map, this cell was free"


def lies_since(clock: str, window: int, *, stays: bool) -> str:
    """Since when something lies where it lies: a time of the run, or the number of a window before."""
    if not stays:
        return "in each step, at this place"
    return f"since {clock}" if clock else f"since window {window}" if window else "from before the windows"


def free(below: str, above: str) -> str:
    """Between whom a free cell lies; each may be nobody."""
    if below and above:
        return f"free, between {below} and {above}"
    if below or above:
        return f"free, {'above' if below else 'below'} {below or above}; nothing else stays in use here"
    return "free; nothing stays in use here"
