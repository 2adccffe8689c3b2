"""The rule for a failed allocation of JAX, PyTorch or CuPy, and its causes.

Their exception is all that is known of that very moment. Only PyTorch's has figures of the card and of its pool; of
JAX, the last readings before have some. Only this module knows the wording of their messages.
"""

import re
from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from tfmemtop.findings.cause import Cause, Key, advised
from tfmemtop.findings.finding import CauseFinding, Severity
from tfmemtop.findings.names import line_with_code, spot
from tfmemtop.findings.remedy import Action
from tfmemtop.findings.rules import rule
from tfmemtop.findings.rules.frameworks import JAX, takers
from tfmemtop.findings.rules.others import HELD_SHARE
from tfmemtop.findings.run_devices import hooked_of_run, output
from tfmemtop.frameworks import FrameworkName
from tfmemtop.state import State
from tfmemtop.state.account import USUAL_CONTEXT, USUAL_LIBRARIES
from tfmemtop.state.lookup import process_total
from tfmemtop.units import GIB, format_bytes, parse_size

_TORCH = re.compile(
    r"(?:CUDA|HIP) out of memory\. Tried to allocate (?P<requested>[\d.]+ \w+)(?:(?! If reserved)[^\r\n])*"
    # PyTorch asks NVML only for that message, and fails before it where a container hides the card from NVML.
    r"|NVML_SUCCESS == DriverAPI::get\(\)->nvmlDeviceGetHandleByPciBusId[^\r\n]*CUDACachingAllocator"
)
# TensorFlow's XLA writes the same, but for the class of the exception.
_JAX = re.compile(
    r"(?:Xla|Jax)RuntimeError: RESOURCE_EXHAUSTED: (?:Out of memory (?:while trying to allocate|allocating)|"
    r"Failed to allocate request for) (?P<requested>[\d.]+ ?\w+)"
)
_CUPY = re.compile(
    r"OutOfMemoryError: Out of memory allocating (?P<requested>[\d,]+ bytes) "
    r"\(allocated so far: (?P<allocated>[\d,]+ bytes)"
)
_MESSAGES = {FrameworkName.PYTORCH: _TORCH, FrameworkName.JAX: _JAX, FrameworkName.CUPY: _CUPY}

_ZERO = re.compile(r"0+(?:\.0+)?(?: ?\w+)?")
_SIZE = r"([\d.]+ (?:bytes|\w+B))"
_FIGURES = {
    name: re.compile(pattern.replace("SIZE", _SIZE))
    for name, pattern in {
        "card": r"total capac\w+ of SIZE",
        "free": r"of which SIZE is free",
        "process": r"this process has SIZE memory in use",
        "allowed": r"SIZE allowed;",
        "allocated": r"Of the allocated memory SIZE is allocated by PyTorch",
        "cached": r"SIZE is reserved by PyTorch but unallocated",
    }.items()
}


class FrameworkExhausted(msgspec.Struct, frozen=True):
    """A failed allocation of ``framework``. Sizes are bytes.

    They are ``None`` where the text does not contain them: only PyTorch's has most. ``card`` is the whole card,
    ``process`` what the whole process had of it, ``allowed`` the framework's limit. ``cached`` is the free part of its
    pool. ``message`` is what was parsed.
    """

    framework: FrameworkName
    message: str
    requested: int | None
    card: int | None = None
    free: int | None = None
    process: int | None = None
    allowed: int | None = None
    allocated: int | None = None
    cached: int | None = None


def parse_framework_exhausted(text: str) -> FrameworkExhausted | None:
    """Return the last failed allocation that *text* reports; ``None`` if it reports none."""
    found = [(match, name) for name, pattern in _MESSAGES.items() for match in pattern.finditer(text)]
    if not found:
        return None
    match, name = max(found, key=lambda each: each[0].start())
    figures = {key: pattern.search(match[0]) for key, pattern in _FIGURES.items()}
    sizes = {key: _bytes(figure[1]) for key, figure in figures.items() if figure}
    if "allocated" in match.groupdict():
        sizes["allocated"] = _bytes(match["allocated"])
    return FrameworkExhausted(name, match[0].strip(), _bytes(match["requested"] or ""), **sizes)


def _bytes(text: str) -> int | None:
    """Return the bytes of ``1.50 GiB``, ``1,536 bytes`` or ``1536bytes``; ``None`` for another text."""
    text = text.replace(",", "").replace("bytes", "").strip().rstrip(".")
    try:
        return parse_size(text)
    except ValueError:
        return 0 if _ZERO.fullmatch(text) else None


_MUCH = USUAL_CONTEXT + USUAL_LIBRARIES + GIB // 2
"""Bytes that a process may have beside its pools without another framework."""

_MOST = 0.9
"""Share of a card, above which a larger limit for JAX helps little: CUDA and libraries need some memory."""

_SMALLER = Action.REDUCE_BATCH
_UNTOLD = "Its message does not say why there was no room."


class FrameworkFailed(CauseFinding, frozen=True):
    """An allocation of JAX, PyTorch or CuPy that failed ended the script."""

    severity = Severity.ERROR
    fatal = True


@rule(30)
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
    cause = _by_readings(state, found) if found.cached is None else _by_own_figures(state, found)
    text = advised(f"Out of memory: {who} asked for {asked}. {cause.text}", brief=cause.advice)
    evidence = (*cause.evidence, f"{found.framework.title} says: {found.message.rstrip('.')}.")
    return FrameworkFailed(replace(cause, text=text, evidence=evidence))


def _by_readings(state: State, found: FrameworkExhausted) -> Cause:
    """Return the cause by the last readings, of a message that names only what was asked for."""
    title, requested = found.framework.title, found.requested or 0
    for index, those in takers(state).items():
        own = next((taker for taker in those if taker.title == title), None)
        other = next((taker for taker in those if taker.title != title and taker.reserves and taker.held), None)
        if other is not None:
            return Cause(
                Key.OTHER_FRAMEWORK,
                f"{other.title} had taken {format_bytes(other.held)} of the card.",
                other.title,
                other.held,
                remedies=other.remedies,
                code=other.code,
                evidence=(f"It initialised its devices at {line_with_code(other.at)}.",) if other.at else (),
            )
        card, whole = state.devices[index], state.devices[index].info.total
        limit, in_use = (own.reading.limit, own.reading.in_use) if own and own.reading else (None, None)
        if own is None or limit is None or in_use is None or in_use + requested <= limit:
            free = card.reading.free if card.reading else None
            if own and (held := _held_by_others(requested, free, process_total(state, card), whole)):
                return held
            continue
        more = (Action.MORE_FOR_JAX,) if whole and title == JAX and limit < _MOST * whole else ()
        return Cause(
            Key.LIMIT_TOO_SMALL,
            f"Its limit is {format_bytes(limit)}, and {format_bytes(in_use)} were in use.",
            bytes=in_use + requested,
            remedies=(*more, _SMALLER),
            evidence=(f"The card has {format_bytes(whole)}.",),
        )
    return Cause(Key.UNKNOWN, _UNTOLD, remedies=(_SMALLER,))


def _held_by_others(requested: int, free: int | None, ours: int | None, card: int | None) -> Cause | None:
    if free is None or ours is None or not card:
        return None
    asked = requested or (free + 1 if free < HELD_SHARE * card else 0)
    others = card - free - ours
    if not 0 < asked - free <= others or others < HELD_SHARE * card:
        return None
    text = f"Other processes held {format_bytes(others)} of the card."
    return Cause(Key.OTHERS, text, "other processes", others, remedies=(Action.RUN_WHEN_FREE, Action.USE_OTHER_GPU))


def _by_own_figures(state: State, found: FrameworkExhausted) -> Cause:
    """Return the cause by PyTorch's own figures: its pool, its limit, who else is on the card, or the whole card."""
    requested, allocated, cached = found.requested or 0, found.allocated or 0, found.cached or 0
    if cached >= requested:
        return Cause(
            Key.FRAGMENTATION,
            f"{format_bytes(cached)} were free in its pool, but not in one piece.",
            bytes=cached,
            remedies=(Action.EXPAND_SEGMENTS, _SMALLER),
            explanation="PyTorch takes segments from CUDA and cuts them into pieces. Free pieces of two segments are "
            "never joined. If segments can grow, PyTorch needs fewer, so their free pieces are larger.",
        )
    if found.allowed is not None and allocated + cached + requested > found.allowed:
        return Cause(
            Key.LIMIT_TOO_SMALL,
            f"Its limit is {format_bytes(found.allowed)}, and {format_bytes(allocated)} were allocated.",
            bytes=allocated + requested,
            remedies=(Action.MORE_FOR_TORCH, _SMALLER),
        )
    of_run = (process_total(state, device) or 0 for device in state.devices.values())  # it may have other processes
    ours = None if found.process is None else max([found.process, *of_run])
    if held := _held_by_others(requested, found.free, ours, found.card):
        return held
    if found.free is not None and found.process is not None:
        lacking, beside = requested - found.free, found.process - allocated - cached
        if 0 < lacking <= beside and beside >= _MUCH:
            text = f"The process holds {format_bytes(beside)} of the card outside PyTorch."
            return Cause(Key.OTHER_FRAMEWORK, text, bytes=beside, remedies=(Action.SHOW_PROCESS,))
    if found.card is None or found.free is None or found.free >= requested:
        return Cause(Key.UNKNOWN, _UNTOLD, remedies=(_SMALLER,))
    return Cause(
        Key.LIMIT_TOO_SMALL,
        f"Of the card's {format_bytes(found.card)}, {format_bytes(found.free)} were free, and PyTorch had "
        f"{format_bytes(allocated)} allocated.",
        bytes=allocated + requested,
        remedies=(_SMALLER,),
        explanation="Weights, gradients, the optimizer's variables and the activations of a step share the pool. "
        "Activations grow with the batch.",
    )
