"""The rules for running out of memory: what failed, and why."""

import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum, auto

from tfmemtop.events import Alike
from tfmemtop.findings.causes import (
    Cause,
    Pending,
    Scratch,
    judge,
    judge_pending,
)
from tfmemtop.findings.finding import Finding, Said, Severity, joined
from tfmemtop.findings.leaks import MANY, Leaked, holding, keep_less, keeping_less, leaked, leaked_until
from tfmemtop.findings.places import named_spot
from tfmemtop.findings.remedy import Action, Remedy
from tfmemtop.findings.replayed import WouldPass, would_pass
from tfmemtop.findings.requests import tensor_text
from tfmemtop.findings.run_devices import hooked_of_run
from tfmemtop.findings.who_holds import held
from tfmemtop.state import State
from tfmemtop.state.anatomy import RETRIED_S, Anatomy, Closeness, anatomies, closest_to_limit, trying
from tfmemtop.state.holdings import alike_on
from tfmemtop.state.lookup import hooked_of
from tfmemtop.units import format_bytes

_OLD_S = 2.0
"""Seconds. Older figures may be of another moment: the memory in use changes thousands of times a second."""

_NEARLY = 0.9
"""Share of the limit. A pool that reached it may be why the script crashed."""

_WAITED_S, _HALF = 8.0, 0.5
"""A full pool may also be why the script crashed if the memory in use did not change for so many seconds before, at
that share of the limit."""


_CRASHES = (signal.SIGSEGV, signal.SIGABRT)
"""Signals of a crash when an allocation failed: TensorFlow writes to memory that it did not get, or one of its own
checks finds that it did not get it."""

_HOLDS_MOST = 0.5
_HOLDS_MUCH = 0.25
"""Shares of the memory in use. From the smaller one on, the finding names the tensors that hold it."""


class Old(Enum):
    """Which figures are older than the failure."""

    ALL = auto()
    LARGEST_FREE = auto()


@dataclass(frozen=True, slots=True)
class Doubt:
    """Some figures were read ``age_s`` seconds before the failure, so they may have changed by then."""

    old: Old
    age_s: float


@dataclass(frozen=True, slots=True)
class AllocationFailed(Finding):
    """TensorFlow raised an out-of-memory error.

    ``holder`` are the tensors, held alike, that held most, if that was much; ``None`` where the cause contains them.
    ``several`` if other processes of the run have pools too. ``would_pass`` is what an earlier run of the same command
    needed.
    """

    severity = Severity.ERROR
    fatal = True

    anatomy: Anatomy
    cause: Cause
    doubt: Doubt | None
    holder: Alike | None = None
    several: bool = False
    would_pass: WouldPass | None = None

    @property
    def collected(self) -> bool:
        """Whether one list or dict of the script holds most of what was in use, in many tensors."""
        held, in_use = self.holder, self.anatomy.in_use
        if held is None or in_use is None:
            return False
        return bool(held.holder) and held.count >= MANY and held.bytes >= in_use * _HOLDS_MOST

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        others = self.cause.remedies
        return (keeping_less(self.holder), *others) if self.collected else others

    @property
    def said(self) -> Said:
        a, cause = self.anatomy, self.cause.said
        failed = f"Out of memory{_where(self)}: {_asked_for(a)}."
        # Without size and operation, TensorFlow's own message is the only information.
        if a.asked is None and a.operation is None and a.message:
            failed = f"Out of memory{_where(self)}. TensorFlow says: {a.message.splitlines()[0]}."
        holder = holding(self.holder) if self.holder else ""
        enough = self.would_pass.text if self.would_pass else ""
        waited = "The request then waited 10 s for room and failed." if isinstance(self.cause, Leaked) else ""
        figures = (
            "" if self.collected else holder,
            enough,
            cause.figures,
            waited,
            _tensor(a),
            _figures(a),
            held(a.held) if a.held else "",
            _reservation(self.doubt),
        )
        code = cause.code or (keep_less(self.holder) if self.collected else ())
        return Said(
            joined(failed, holder if self.collected else "", cause.headline),
            cause.explanation,
            code,
            joined(*figures),
        )


def out_of_memory(state: State) -> Iterator[AllocationFailed]:
    """Yield the newest out-of-memory error of each process of the run, with its anatomy and cause."""
    for anatomy in anatomies(state):
        cause = leaked(state, anatomy) or judge(anatomy)
        holder = None if isinstance(cause, Leaked) else _holder(state, anatomy)
        enough = would_pass(state, anatomy.device, anatomy.limit) if anatomy.device and not anatomy.scratch else None
        yield AllocationFailed(anatomy, cause, _doubt(anatomy), holder, _several(state), enough)


def _several(state: State) -> bool:
    return sum(1 for _, hooked in hooked_of_run(state) if hooked.allocators) > 1


def _holder(state: State, a: Anatomy) -> Alike | None:
    hooked = hooked_of(state, a.pid)
    if hooked is None or hooked.failure is None or hooked.look is None or a.device is None or a.in_use is None:
        return None
    if hooked.look.t < hooked.failure.error.t - RETRIED_S:
        return None
    return next(
        (one for one in alike_on(hooked, a.device) if one.count > 1 and one.bytes >= a.in_use * _HOLDS_MUCH), None
    )


def _doubt(a: Anatomy) -> Doubt | None:
    if a.reading_age_s is not None and a.reading_age_s > _OLD_S:
        return Doubt(Old.ALL, a.reading_age_s)
    if a.map_age_s is not None and a.map_age_s > _OLD_S and a.largest_free is not None:
        return Doubt(Old.LARGEST_FREE, a.map_age_s)
    return None


@dataclass(frozen=True, slots=True)
class NoRoom(Finding):
    """TensorFlow finds no room, and perhaps waits for some. It raises an error after 10 s, or never."""

    anatomy: Anatomy
    cause: Scratch | Pending | Leaked
    several: bool = False

    @property
    def severity(self) -> Severity:
        return Severity.INFO if isinstance(self.cause, Scratch) else Severity.WARNING

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        return self.cause.remedies

    @property
    def said(self) -> Said:
        a, cause = self.anatomy, self.cause.said
        return Said(
            f"No room{_where(self)}: {_asked_for(a)}. {cause.headline}",
            cause.explanation,
            figures=joined(cause.figures, _tensor(a), _figures(a), _why_no_size(a), held(a.held) if a.held else ""),
        )


def running_out(state: State) -> Iterator[NoRoom]:
    """Yield a finding for each pool in which TensorFlow looks for room right now."""
    for anatomy in trying(state):
        yield NoRoom(anatomy, leaked(state, anatomy) or judge_pending(anatomy), _several(state))


@dataclass(frozen=True, slots=True)
class CrashedWhenFull(Finding):
    """The script ended by SIGSEGV or SIGABRT with its CPU pool close to the limit.

    ``waited`` if the memory in use did not change before the end, as while TensorFlow waits for room. ``leaked`` is the
    leak that filled the pool, ``None`` if no leak filled it.
    """

    severity = Severity.ERROR
    fatal = True

    closest: Closeness
    waited: bool
    leaked: Leaked | None = None

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        if self.leaked is not None:
            return self.leaked.remedies
        return Remedy(Action.ENLARGE_CPU_POOL), Remedy(Action.FIND_LIMIT), Remedy(Action.RUN_AGAIN)

    @property
    def said(self) -> Said:
        closest = self.closest
        at = f" at {named_spot(closest.line)}" if closest.line else ""
        full = f"At least {format_bytes(closest.highest)} were in use"
        if closest.pool is not None:
            full += f" in a pool of {format_bytes(closest.pool)}"
        full = joined(f"{full}.", held(closest.held) if closest.held else "")
        waited = ""
        if self.waited:
            waited = (
                f"Its use had not changed for {closest.still_s:.0f} s, as happens while TensorFlow waits for room. "
            )
        headline = f"The script probably crashed{at} because TensorFlow's CPU pool ran out"
        if self.leaked is not None:
            leak = self.leaked.said
            return Said(f"{headline}. {leak.headline}", leak.explanation, leak.code, f"{leak.figures} {full}")
        return Said(
            f"{headline}: its limit is {format_bytes(closest.limit)}.",
            "TensorFlow's allocator returns nothing when its limit is reached, and some operations write there "
            "without a check. This was seen with TensorFlow 2.21 in a convolution, without tfmemtop as well.",
            figures=f"{full} {waited}Some operations of TensorFlow crash there instead of raising an error.",
        )


def crashed_when_full(state: State) -> Iterator[CrashedWhenFull]:
    """Find a crash of the script with its CPU pool nearly full.

    TensorFlow's own code may crash, instead of raising an error, when that pool runs out. Machines with a GPU are left
    out.
    """
    how = state.run.ending if state.run else None
    if how is None or state.devices or how.signal not in _CRASHES:
        return
    closest = closest_to_limit(state)
    if closest is None:
        return
    # TensorFlow waits 10 s for room before the allocation fails. It allocates nothing meanwhile.
    waited = closest.still_s >= _WAITED_S and closest.share >= _HALF
    if closest.share >= _NEARLY or waited:
        yield CrashedWhenFull(closest, waited, _leaked(state, closest))


def _leaked(state: State, closest: Closeness) -> Leaked | None:
    hooked = hooked_of(state, closest.pid)
    trend = hooked.trends.get(closest.device) if hooked else None
    if hooked is None or trend is None:
        return None
    leak = leaked_until(hooked, closest.device, trend, trend.end, closest.highest)
    return leak and replace(leak, limit=closest.limit)


def _where(found: AllocationFailed | NoRoom) -> str:
    return f" in process {found.anatomy.pid}" if found.several else ""


def _asked_for(a: Anatomy) -> str:
    """Return what was requested: ``Conv2D at train.py:12 asked for 64.0 MiB``, as far as it is known."""
    who = _operation(a.operation) + (f" at {named_spot(a.line)}" if a.line else "")
    if a.asked is not None:
        return f"{who} asked for {format_bytes(a.asked)}"
    if a.more_than:
        return f"{who} asked for more than {format_bytes(a.more_than)}"
    return f"{who} asked for more than there was room for"


def _why_no_size(a: Anatomy) -> str:
    """Return why only a lower bound of the size is given; empty if the size is known, or no bound is."""
    if a.asked is not None or a.more_than is None:
        return ""
    what = (
        "a tf.function runs many operations" if a.operation is None else f"{a.operation} may need more than its output"
    )
    return f"The exact size is known only when TensorFlow gives up: {what}."


_GRAPH = re.compile(r"__(?:inference|forward|backward)_(.+)_\d+")
"""TensorFlow's name for a graph of a ``tf.function``: it contains the function's name and a number."""


def _operation(name: str | None) -> str:
    """Return the name of an operation: ``AddV2``; ``tf.function step`` for ``__inference_step_9``."""
    if name is None:
        return "the script"
    graph = _GRAPH.fullmatch(name)
    return f"tf.function {graph[1]}" if graph else name


def _tensor(a: Anatomy) -> str:
    return "" if a.shape is None else f"The request was for a tensor of {tensor_text(a.shape, a.dtype)}."


def _figures(a: Anatomy) -> str:
    """Return device and process of the failure, and those figures of that moment that are known."""
    known = [
        ("in use", a.in_use),
        ("cached", a.cached),
        ("largest free chunk", a.largest_free),
        ("limit", a.limit),
        ("other processes", a.others or None),
    ]
    sizes = ", ".join(f"{name} {format_bytes(size)}" for name, size in known if size is not None)
    place = f"{a.device}, process {a.pid}" if a.device else f"Process {a.pid}"
    times = f", {a.times} such errors" if a.times > 1 else ""
    return f"{place}{times}{': ' if sizes else ''}{sizes}."


def _reservation(doubt: Doubt | None) -> str:
    if doubt is None:
        return ""
    if doubt.old is Old.ALL:
        return f"These figures are {doubt.age_s:.0f} s older than the failure, so this may be wrong."
    return f"The largest free chunk was read {doubt.age_s:.0f} s before the failure; it may have been different then."
