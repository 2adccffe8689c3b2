"""The rule for a failed allocation of JAX, PyTorch or CuPy, and its causes.

Their exception is all that is known of that very moment. Only PyTorch's has figures of the card and of its pool; of
JAX, the last readings before have some.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from tfmemtop.findings.cause import Cause, Key
from tfmemtop.findings.finding import Finding, Said, Severity, joined
from tfmemtop.findings.frameworks import HIDDEN, JAX_GROWTH, TENSORFLOW, takers
from tfmemtop.findings.names import line_with_code, spot
from tfmemtop.findings.others import HELD_SHARE
from tfmemtop.findings.remedy import Action, Remedy
from tfmemtop.findings.run_devices import hooked_of_run, output
from tfmemtop.framework_text import FrameworkExhausted, parse_framework_exhausted
from tfmemtop.state import State
from tfmemtop.state.account import USUAL_CONTEXT, USUAL_LIBRARIES
from tfmemtop.units import GIB, format_bytes

_MUCH = USUAL_CONTEXT + USUAL_LIBRARIES + GIB // 2
"""Bytes that a process may have beside its pools without another framework."""

_MOST = 0.9
"""Share of a card, above which a larger limit for JAX helps little: CUDA and libraries need some memory."""

_SMALLER = Remedy(Action.REDUCE_BATCH)


class FrameworkFailed(Finding, frozen=True):
    """An allocation of JAX, PyTorch or CuPy ended the script, at the line ``at``, empty where that is not known."""

    severity = Severity.ERROR
    fatal = True

    exhausted: FrameworkExhausted
    at: str
    cause: Cause

    @property
    def whole_cause(self) -> Cause:
        return self.cause

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        return self.cause.remedies

    @property
    def said(self) -> Said:
        return Said(self.cause.text, self.cause.explanation, self.cause.code, joined(*self.cause.evidence))


def framework_failed(state: State) -> Iterator[FrameworkFailed]:
    """Find the exception of another framework's that ended the run: as the hook reports it, else in the output."""
    run = state.run
    if run is None or not run.failed:
        return
    errors = [hooked.error for _, hooked in hooked_of_run(state) if hooked.error is not None]
    for error in errors:
        if found := parse_framework_exhausted(f"{error.kind}: {error.message}"):
            yield _failed(state, found, spot(error.file, error.line) if error.file else "")
            return
    if not errors and (found := parse_framework_exhausted(output(state))):
        yield _failed(state, found, "")


def _failed(state: State, found: FrameworkExhausted, at: str) -> FrameworkFailed:
    who = found.framework.title + (f" at {at}" if at else "")
    asked = format_bytes(found.requested) if found.requested else "more than there was"
    cause = _by_readings(state, found) if found.cached is None else _by_own_figures(found)
    return FrameworkFailed(found, at, replace(cause, text=f"Out of memory: {who} asked for {asked}. {cause.text}"))


def _by_readings(state: State, found: FrameworkExhausted) -> Cause:
    """Return the cause by the last readings, of a message that names only what was asked for."""
    title, requested = found.framework.title, found.requested or 0
    for index, those in takers(state).items():
        own = next((taker for taker in those if taker.title == title), None)
        other = next((taker for taker in those if taker.title != title and taker.reserves and taker.held), None)
        if other is not None:
            of_tensorflow = other.title == TENSORFLOW
            hide = (Remedy(Action.HIDE_FROM_TENSORFLOW), Remedy(Action.GROWTH_ON))
            return Cause(
                Key.OTHER_FRAMEWORK,
                f"{other.title} had taken {format_bytes(other.held)} of the card.",
                other.title,
                other.held,
                remedies=hide if of_tensorflow else (Remedy(Action.JAX_GROWTH_ON),),
                code=HIDDEN if of_tensorflow else JAX_GROWTH,
                evidence=(f"It made its devices at {line_with_code(other.at)}." if other.at else "",),
            )
        if own is None or own.limit is None or own.in_use is None or own.in_use + requested <= own.limit:
            continue
        whole = state.devices[index].info.total
        more = (Remedy(Action.MORE_FOR_JAX),) if whole and own.share and own.limit < _MOST * whole else ()
        return Cause(
            Key.LIMIT_TOO_SMALL,
            f"Its limit is {format_bytes(own.limit)}, and {format_bytes(own.in_use)} were in use.",
            bytes=own.in_use + requested,
            remedies=(*more, _SMALLER),
            evidence=(f"The card has {format_bytes(whole)}.",),
        )
    had = f" It had {format_bytes(found.allocated)} allocated." if found.allocated is not None else ""
    return Cause(Key.UNKNOWN, f"Its message does not tell why there was no room.{had}", remedies=(_SMALLER,))


def _by_own_figures(found: FrameworkExhausted) -> Cause:
    requested, allocated, cached = found.requested or 0, found.allocated or 0, found.cached or 0
    evidence = (_figures(found),)
    if cached >= requested:
        return Cause(
            Key.FRAGMENTATION,
            f"{format_bytes(cached)} were free in its pool, but not in one piece.",
            bytes=cached,
            remedies=(Remedy(Action.EXPAND_SEGMENTS), _SMALLER),
            evidence=evidence,
            explanation="PyTorch cuts the segments that it takes from CUDA in pieces, and never joins those of two "
            "segments. Segments that can grow are few, so their free pieces are large.",
        )
    if found.allowed is not None and allocated + cached + requested > found.allowed:
        return Cause(
            Key.LIMIT_TOO_SMALL,
            f"Its limit is {format_bytes(found.allowed)}, and {format_bytes(allocated)} were allocated.",
            bytes=allocated + requested,
            remedies=(Remedy(Action.MORE_FOR_TORCH), _SMALLER),
            evidence=evidence,
        )
    return replace(_held_elsewhere(found, requested, allocated + cached) or _full(found, allocated), evidence=evidence)


def _held_elsewhere(found: FrameworkExhausted, requested: int, pool: int) -> Cause | None:
    """Return that others hold what was lacking: other processes, or other libraries in this one."""
    if found.card is None or found.free is None or found.process is None:
        return None
    lacking = requested - found.free
    others, beside = found.card - found.free - found.process, found.process - pool
    if 0 < lacking <= others and others >= HELD_SHARE * found.card:
        return Cause(
            Key.OTHERS,
            f"Other processes hold {format_bytes(others)} of the card.",
            "other processes",
            others,
            remedies=(Remedy(Action.RUN_WHEN_FREE), Remedy(Action.USE_OTHER_GPU)),
        )
    if 0 < lacking <= beside and beside >= _MUCH:
        return Cause(
            Key.OTHER_FRAMEWORK,
            f"The process holds {format_bytes(beside)} of the card outside PyTorch.",
            bytes=beside,
            remedies=(Remedy(Action.SHOW_PROCESS),),
        )
    return None


def _full(found: FrameworkExhausted, allocated: int) -> Cause:
    return Cause(
        Key.LIMIT_TOO_SMALL,
        f"The card is full: of {format_bytes(found.card)}, PyTorch had {format_bytes(allocated)} allocated.",
        bytes=allocated + (found.requested or 0),
        remedies=(_SMALLER,),
        explanation="Weights, gradients, the optimizer's copies and the activations of a step share the pool. "
        "Activations grow with the batch.",
    )


def _figures(found: FrameworkExhausted) -> str:
    sizes = {
        "card": found.card,
        "free": found.free,
        "this process": found.process,
        "allocated": found.allocated,
        "free in the pool": found.cached,
        "limit": found.allowed,
    }
    known = ", ".join(f"{name} {format_bytes(size)}" for name, size in sizes.items() if size is not None)
    return f"PyTorch's own figures: {known}."
