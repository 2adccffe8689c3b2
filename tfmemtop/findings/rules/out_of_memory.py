"""The rules for running out of memory: what failed, and why."""

import signal
from collections.abc import Iterator

from msgspec.structs import replace

from tfmemtop.findings.cause import LONGEST, Cause, Key, advised
from tfmemtop.findings.diagnosis import explained
from tfmemtop.findings.finding import CauseFinding, Finding, Said, Severity, joined
from tfmemtop.findings.names import capital, named_spot, tensor_text
from tfmemtop.findings.remedy import Action, Remedy
from tfmemtop.findings.request import asked_by, at_line, compiled_name
from tfmemtop.findings.room import held_back, held_by_others
from tfmemtop.findings.rules import rule
from tfmemtop.findings.rules.others import two_reserve_everything
from tfmemtop.findings.run_devices import hooked_of_run
from tfmemtop.findings.scene import LONG_AGO_S
from tfmemtop.state import State
from tfmemtop.state.anatomy import Anatomy
from tfmemtop.state.lookup import device_of, once_per_revision
from tfmemtop.state.model import RETRIED_S
from tfmemtop.state.program import program
from tfmemtop.state.shortages import anatomies, crashes, failed_at, trying
from tfmemtop.units import format_bytes, spoken

_HELD_UP_S = 1.0
"""Seconds. A shorter wait most often ends at once, where threads share a pool that is nearly full."""

CRASHES = (signal.SIGSEGV, signal.SIGABRT)
"""Signals of a crash when an allocation failed: TensorFlow writes to memory that it did not get, or one of its own
checks finds that it did not get it."""


_NO_REQUEST = (Key.LIMIT_TOO_SMALL, Key.FRAGMENTATION, Key.UNKNOWN, Key.OTHERS, Key.SCRATCH, Key.GROWTH)
"""The causes whose text does not name the request that failed."""


_NAMES_REQUEST = (Key.STEP_LARGER, Key.GROWN_BY_COPYING, Key.DENSE_GRADIENT)
"""The causes whose text names the request that failed, with its operation, line and size."""

_NOTABLY = 1.05
"""Fragmentation is mentioned if more than so many times what was asked for at least was free in pieces."""

_BEGAN = "Out of memory"
_TOO_MUCH = "What is in use and the request together are more than there is."
_TRIES = "TensorFlow tries for 10 s before it fails. If no error follows, it found room after all."
_LOOK = (Action.SHOW_POOL,)


class AllocationFailed(CauseFinding, frozen=True):
    """An allocation failed for good: TensorFlow raised an error, or ``crashed`` where it got no memory.

    ``several`` if other processes of the run have pools too. ``began`` is how the text begins.
    """

    severity = Severity.ERROR
    fatal = True

    anatomy: Anatomy
    several: bool = False
    crashed: bool = False
    began: str = _BEGAN

    @property
    def whole_cause(self) -> Cause:
        """The cause with a text that says which request failed, or where.

        What the text has no room for is left out: that the script crashed, the shape, at last what is in use.
        """
        cause = self.cause
        began = self.began
        if cause.key in _NO_REQUEST and not (cause.key is Key.OTHERS and self._only_message):
            told = self.anatomy.shape is not None and tensor_text(self.anatomy.shape, None) in cause.text
            heads = [
                self._failed(began, shaped=shaped, crashed=crashed)
                for shaped, crashed in ((True, True), (False, True), (False, False))
                if not (shaped and told)
            ]
            texts = [joined(head, one) for one in (*cause.mostly, cause.text) for head in heads]
            if len(text := advised(*texts, brief=cause.advice)) <= LONGEST:
                return replace(cause, text=text, evidence=tuple(one for one in cause.evidence if one not in text))
            if cause.key is Key.UNKNOWN:
                text = self._failed(began, crashed=True)
                return replace(cause, text=text, evidence=(cause.text, *cause.evidence))
        lines = [named_spot(line) for line in (self.anatomy.line, self.anatomy.node_line) if line]
        at = next((f" at {line}" for line in lines if line not in cause.text), "")
        if cause.key in _NAMES_REQUEST and any(line in cause.text for line in lines):
            at = ""  # one place is enough
        # What helps matters more than where it happened: that stands in the evidence.
        text = advised(f"{began}{at}: {cause.text}", f"{began}: {cause.text}", brief=cause.advice)
        text = text if len(text) <= LONGEST else cause.text
        if cause.key in _NAMES_REQUEST and (not lines or any(line in text for line in lines)):
            return replace(cause, text=text)
        return replace(cause, text=text, evidence=(*cause.evidence, f"The request that failed: {self._request()}."))

    def _failed(self, began: str, *, shaped: bool = False, crashed: bool) -> str:
        """Return what failed, in a sentence."""
        if self.crashed and not self.anatomy.asked and not self.anatomy.line:
            return "TensorFlow's pool was full when the script crashed."
        crash = ", and the script crashed" if self.crashed and crashed else ""
        return f"{began}{crash}{_where(self)}: {self._request(shaped=shaped)}."

    @property
    def _only_message(self) -> bool:
        return self.anatomy.asked is None and self.anatomy.operation is None and bool(self.anatomy.message)

    def _request(self, *, shaped: bool = False) -> str:
        """Return what was requested. Without size and operation, TensorFlow's own message is the only information."""
        a = self.anatomy
        if self._only_message:
            return f'TensorFlow says "{a.message.splitlines()[0]}"'
        return asked_for(a, shaped=shaped)

    @property
    def figures(self) -> tuple[str, ...]:
        return _tensor(self.anatomy), _figures(self.anatomy), _doubt(self.anatomy)


@once_per_revision
def failures(state: State) -> list[AllocationFailed]:
    """Return the newest failure of each process of the run, with its anatomy and cause."""
    found = [_failure(state, anatomy) for anatomy in anatomies(state)]
    run = state.run
    crashed = run is not None and run.ending is not None and run.ending.signal in CRASHES
    if not found and run is not None:
        died = crashes(state, crashed=crashed)
        found = [_failure(state, one, crashed=crashed or (one.pid != run.pid and not run.failed)) for one in died]
    return found


@rule(20)
def out_of_memory(state: State) -> Iterator[AllocationFailed]:
    """Yield the failed allocations of the run."""
    yield from failures(state)


def _failure(state: State, anatomy: Anatomy, *, crashed: bool = False) -> AllocationFailed:
    t = failed_at(state, anatomy.pid)
    cause = _cause(state, anatomy, t)
    if not cause.keeps_growing and (passed := passed_before(state)):
        cause = replace(cause, evidence=(*cause.evidence, passed))
    went_on = state.run is not None and state.run.ending is not None and state.run.ending.good
    began = "The run went on after memory ran out" if went_on else _BEGAN
    return AllocationFailed(cause, anatomy, _several(state), crashed, began)


def passed_before(state: State) -> str:
    """Return with which arguments or variables an earlier run of the same program passed; empty if none did."""
    run = state.run
    for earlier in reversed(state.runs[:-1]):
        if (
            run is None
            or earlier.ending is None
            or not earlier.ending.good
            or program(earlier.argv)[:1] != program(run.argv)[:1]
        ):
            continue
        differ = [f"{name}={value}" for name, value in earlier.variables.items() if run.variables.get(name) != value]
        if earlier.argv != run.argv:
            differ.append(" ".join(program(earlier.argv)))
        if differ:
            return f"Run {earlier.run} passed, with {' '.join(differ)}."
    return ""


def _several(state: State) -> bool:
    return sum(1 for _, hooked in hooked_of_run(state) if hooked.allocators) > 1


def _doubt(a: Anatomy) -> str:
    """Return that some figures are older than the failure; empty if none is."""
    if a.reading_age_s is not None and a.reading_age_s > LONG_AGO_S:
        return f"These figures are {a.reading_age_s:.0f} s older than the failure, so this may be wrong."
    if a.map_age_s is not None and a.map_age_s > LONG_AGO_S and a.largest_free is not None:
        return f"The largest free chunk was read {a.map_age_s:.0f} s before the failure; it may have been another."
    return ""


class NoRoom(Finding, frozen=True):
    """TensorFlow finds no room, and perhaps waits for some. It raises an error after 10 s, or never."""

    anatomy: Anatomy
    cause: Cause
    several: bool = False
    ended: bool = False

    @property
    def severity(self) -> Severity:
        return Severity.INFO if self.cause.key is Key.SCRATCH else Severity.WARNING

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        return self.cause.remedies

    @property
    def waited(self) -> bool:
        """Whether the wait is the cause of a run: it has lasted longer than TensorFlow tries for one request."""
        return self.anatomy.waited_s >= RETRIED_S

    @property
    def matters(self) -> bool:
        """Whether a run that goes on is held up by the wait, which most often ends at once, or will be soon."""
        return self.anatomy.waited_s >= _HELD_UP_S or self.cause.keeps_growing

    @property
    def told(self) -> Cause:
        """The cause with a text that says first that TensorFlow waits or waited, or has found no room."""
        waited = f"the run waited {spoken(self.anatomy.waited_s)} for memory"
        began = "The run waits for memory" if not self.ended else f"At the end {waited}"
        if not self.anatomy.still or self.anatomy.waited_s < _HELD_UP_S:
            began = f"{capital(waited)}, then went on" if self.waited else "A request found no room"
        failed = AllocationFailed(self.cause, self.anatomy, self.several, began=began)
        return replace(self.cause, text=failed.whole_cause.text)

    @property
    def said(self) -> Said:
        a, cause = self.anatomy, self.cause
        unknown = cause.key is Key.UNKNOWN and not self.waited
        tries = "" if self.waited or cause.key is Key.SCRATCH else _TRIES
        text = self.told.text
        request, more = f"{capital(asked_for(a))}.", cause.text if cause.key is Key.UNKNOWN else ""
        return Said(
            text,
            "If an error follows, it names the size." if unknown else cause.explanation,
            figures=joined(
                *(one for one in (request, more) if one not in text), tries, *cause.evidence, _tensor(a), _figures(a)
            ),
        )


@rule(40)
def running_out(state: State) -> Iterator[NoRoom]:
    """Yield a finding for each pool in which TensorFlow looks for room right now."""
    ended = state.run is not None and not state.run.going
    for anatomy in trying(state):
        yield NoRoom(anatomy, _cause(state, anatomy, state.now), _several(state), ended)


def _cause(state: State, a: Anatomy, t: float) -> Cause:
    """Return the cause; where another process of the same script holds the card, with growth off, what helps."""
    cause = _of_unknown_size(state, a, t)
    card = device_of(state, a.pid, a.device) if a.device else None
    rivals = two_reserve_everything(state) if cause.key is Key.OTHERS else ()
    here = (one for one in rivals if card is None or one.place.gpu == card.info.index)
    two = next((one for one in here if a.pid in (one.first.pid, one.second.pid)), None)
    if two is None:
        return cause
    said, helps = two.said, two.remedies[:1]
    return replace(cause, text=said.headline, remedies=helps, code=said.code, evidence=(said.figures,))


def _of_unknown_size(state: State, a: Anatomy, t: float) -> Cause:
    """Return the cause where the size of the request may not be known, but that there was no room for it."""
    cause = explained(state, a, t)
    least = None if a.asked is not None or a.more_than is None else a.more_than + 1
    if least is None or cause.key is not Key.UNKNOWN:
        return cause
    larger = replace(a, asked=max(least, (a.cached or 0) + 1))  # than all that is free in the pool
    full = held_back(larger) or held_by_others(larger)
    if full is not None:
        full = replace(full, evidence=(*full.evidence, *cause.evidence))
    if (a.cached or 0) <= _NOTABLY * least:
        return full or replace(cause, text=_TOO_MUCH, remedies=_LOOK)
    text = f"If it asked for less than {format_bytes(a.cached)}, the pool is fragmented. If not: "
    return replace(cause, text=text + (full.text if full else _TOO_MUCH), remedies=full.remedies if full else _LOOK)


def _where(found: AllocationFailed | NoRoom) -> str:
    return f" in process {found.anatomy.pid}" if found.several else ""


def asked_for(a: Anatomy, *, shaped: bool = False) -> str:
    """Return what was requested: ``Conv2D at train.py:12 asked for 64.0 MiB``, as far as it is known.

    With *shaped*, the shape of the tensor follows.
    """
    name, line = asked_by(a)
    function = ""
    if compiled := compiled_name(a):
        name, function, line = "XLA", at_line(f" for the compiled {compiled}", line), None
    who = at_line(name or "TensorFlow", line)
    if a.asked is not None:
        shape = f", {tensor_text(a.shape, None)}" if shaped and a.shape else ""
        return f"{who} asked for {format_bytes(a.asked)}{shape}{function}"
    if a.more_than:
        return f"{who} asked for more than {format_bytes(a.more_than)}"
    return f"{who} asked for more than there was room for"


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
