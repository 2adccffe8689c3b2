"""Why an allocation failed. Each cause has one class and one small rule; the first rule that holds gives the cause."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum, auto

from tfmemtop.findings.finding import Said
from tfmemtop.findings.remedy import Action, Remedy, raise_limit
from tfmemtop.state.account import USUAL_CONTEXT, USUAL_LIBRARIES
from tfmemtop.state.anatomy import Anatomy
from tfmemtop.state.lookup import LimitBy
from tfmemtop.units import format_bytes

BESIDE_POOLS = f"{format_bytes(USUAL_CONTEXT + USUAL_LIBRARIES)} on an H200"
"""The memory that CUDA's context and libraries take in a process, as text."""

_NOTABLY = 1.05
"""Fragmentation is mentioned if more than this many times the request, or the least that it can be, was free in pieces.
"""


class Cause:
    """The base of all causes. Sizes are in bytes."""

    __slots__ = ()

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        """What helps, best first."""
        return ()

    @property
    def said(self) -> Said:
        """The cause as text."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Fragmented(Cause):
    """Enough was free in the pool (``cached``), but in pieces that were each too small."""

    cached: int
    largest_free: int
    on_cpu: bool

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        if self.on_cpu:
            return Remedy(Action.ENLARGE_CPU_POOL), Remedy(Action.FIX_SHAPES)
        return Remedy(Action.USE_CUDA_ALLOCATOR), Remedy(Action.SHOW_POOL)

    @property
    def said(self) -> Said:
        of_gpu = (
            ""
            if self.on_cpu
            else "cuda_malloc_async, which can join free pages; a pool that is one region from the start (growth off); "
        )
        return Said(
            f"The pool is fragmented: {format_bytes(self.cached)} of it were free, but no free chunk was larger than "
            f"{format_bytes(self.largest_free)}.",
            "BFC cuts its regions into chunks, and a tensor needs one chunk. Tensors that live long keep the free "
            f"chunks between them apart. What helps: {of_gpu}shapes that do not change, because a new tensor then "
            "fits where an old one was.",
            figures="In one chunk it would have fitted.",
        )


@dataclass(frozen=True, slots=True)
class HeldBack(Cause):
    """A ``limit`` that the user, the script or the environment set was too low.

    The card, or for the CPU pool the machine, had ``free`` bytes.
    """

    limit: int
    limit_by: LimitBy
    free: int
    on_cpu: bool

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        return raise_limit(on_cpu=self.on_cpu), Remedy(Action.RUN_AGAIN)

    @property
    def said(self) -> Said:
        where = "machine" if self.on_cpu else "card"
        return Said(
            f"Stopped by the limit of {format_bytes(self.limit)} {_LIMIT_OF[self.limit_by]}.",
            f"TensorFlow never exceeds the limit, even if the {where} has free memory.",
            figures=f"The {where} had {format_bytes(self.free)} free.",
        )


@dataclass(frozen=True, slots=True)
class HeldByOthers(Cause):
    """Other processes hold ``others`` bytes of the card, which include the ``short`` bytes that were lacking."""

    others: int
    short: int

    remedies = (Remedy(Action.USE_OTHER_GPU),)

    @property
    def said(self) -> Said:
        return Said(
            f"Other processes hold {format_bytes(self.others)} of the card.",
            "TensorFlow's own limit is what was free on the card when TensorFlow started, less a reserve. It cannot "
            "get what other processes hold. The process table shows who they are.",
            figures=f"{format_bytes(self.short)} of that were lacking here.",
        )


@dataclass(frozen=True, slots=True)
class TrulyFull(Cause):
    """With the bytes requested, ``needed`` bytes would have been in use: more than ``whole``.

    ``whole`` is the pool's limit if ``by_limit``, else the card's memory.
    """

    in_use: int
    needed: int
    whole: int
    by_limit: bool

    remedies = (Remedy(Action.REDUCE_BATCH),)

    @property
    def said(self) -> Said:
        whole = "The pool is full: its limit is" if self.by_limit else "The card is full: it has"
        return Said(
            f"{whole} {format_bytes(self.whole)}, and {format_bytes(self.needed - self.whole)} more were needed.",
            "The memory in use holds tensors that are still needed: weights, the optimizer's copies, and the "
            "activations of one step, which grow with the batch.",
            figures=f"{format_bytes(self.in_use)} were in use.",
        )


@dataclass(frozen=True, slots=True)
class CardFull(Cause):
    """The limit left room, but the card did not: ``more`` bytes were needed, and only ``free`` were free.

    ``others`` is what other processes hold, ``None`` where that is not known.
    """

    more: int
    free: int
    others: int | None

    remedies = (Remedy(Action.LEAVE_ROOM),)

    @property
    def said(self) -> Said:
        others = "" if self.others == 0 else ", or other processes" if self.others is None else ", and other processes"
        return Said(
            f"The card is full: {format_bytes(self.more)} more were needed, and {format_bytes(self.free)} were free.",
            "Each logical device has a pool of its own, and TensorFlow does not compare their limits with the card. "
            f"CUDA's context and libraries take more besides: {BESIDE_POOLS}.",
            figures=f"The process's other pools, its CUDA context and libraries hold the rest{others}.",
        )


@dataclass(frozen=True, slots=True)
class Scratch(Cause):
    """The request was for scratch memory: TensorFlow itself writes that it can do without it."""

    remedies = (Remedy(Action.SHOW_POOL),)

    @property
    def said(self) -> Said:
        return Said(
            "This is harmless: it was scratch memory, which TensorFlow can do without.",
            "Convolutions try several algorithms, each with its own scratch memory. TensorFlow leaves out those that "
            "do not fit.",
            figures="With more room it may be faster.",
        )


class Gap(Enum):
    """Why the cause is not known."""

    WHICH_POOL = auto()
    CUDA_POOL = auto()  # CUDA's own pool: its chunks cannot be read
    FIGURES = auto()
    NO_MAP = auto()
    SHOULD_FIT = auto()


class Figure(Enum):
    """A figure without which no cause can be found."""

    ASKED = auto()
    POOL = auto()
    LIMIT = auto()


@dataclass(frozen=True, slots=True)
class Unexplained(Cause):
    """No cause was found; ``missing`` are the figures that are not known."""

    gap: Gap
    missing: tuple[Figure, ...] = ()
    on_cpu: bool = False

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        if self.gap is Gap.NO_MAP and not self.on_cpu:
            return (Remedy(Action.USE_CUDA_ALLOCATOR),)
        return (Remedy(Action.SET_LIMIT),)

    @property
    def said(self) -> Said:
        return Said(
            f"The cause is unknown: {_gap(self)}.",
            "The probe, which reads the pool from inside, and TensorFlow's own lines in the output tell more.",
            figures="The figures may be of another moment." if self.gap is Gap.SHOULD_FIT else "",
        )


@dataclass(frozen=True, slots=True)
class Pending(Cause):
    """TensorFlow still looks for room, so the cause is provisional.

    ``known`` is whether the size of the request is known. If it is, the cause is ``otherwise``.
    If it is not, there are two possibilities. Either less than ``cached`` bytes were requested, and the pool is
    fragmented; ``cached`` is ``None`` if it is not. Or the cause is ``otherwise``; if that is ``None``, the bytes in
    use and the bytes requested are together too much.
    """

    cached: int | None
    otherwise: Cause | None
    known: bool = False

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        if isinstance(self.otherwise, HeldBack):
            return *self.otherwise.remedies, Remedy(Action.SHOW_POOL)
        return self.otherwise.remedies if self.otherwise else (Remedy(Action.SHOW_POOL),)

    @property
    def said(self) -> Said:
        otherwise = Said("What is in use and the request together are more than there is.")
        if self.otherwise is not None:
            otherwise = self.otherwise.said
        headline = otherwise.headline
        if self.cached is not None:
            headline = (
                f"If it asked for less than {format_bytes(self.cached)}, the pool is fragmented. If not: {headline}"
            )
        waits = "TensorFlow tries for 10 s before it fails. If no error follows, it found room after all."
        return Said(
            headline,
            otherwise.explanation
            if self.known
            else "If an error follows, it names the size that was asked for, which shows the cause.",
            figures=f"{otherwise.figures} {waits}".lstrip(),
        )


def lacking(a: Anatomy) -> int | None:
    """Return the least number of bytes by which the pool would have had to grow; ``None`` if a figure is not known."""
    if a.asked is None or a.pool is None or a.in_use is None:
        return None
    return max(0, a.in_use + a.asked - a.pool)


def fragmented(a: Anatomy) -> Fragmented | None:
    """Return the cause if enough was free in the pool, but in pieces that were each too small."""
    if a.asked is None or a.cached is None or a.largest_free is None:
        return None
    return Fragmented(a.cached, a.largest_free, a.on_cpu) if a.cached >= a.asked > a.largest_free else None


def held_back(a: Anatomy) -> HeldBack | None:
    """Return the cause if a limit was set, by anything but TensorFlow itself, and there was room without it."""
    more = lacking(a)
    if a.limit_by is LimitBy.TENSORFLOW or a.limit is None or a.asked is None or more is None:
        return None
    if a.pool is None or a.pool + a.asked <= a.limit or a.card_free is None or a.card_free < more:
        return None
    return HeldBack(a.limit, a.limit_by, a.card_free, a.on_cpu)


def held_by_others(a: Anatomy) -> HeldByOthers | None:
    """Return the cause if other processes hold as many bytes as were lacking."""
    more = lacking(a)
    if more is None or not a.others or a.on_cpu:
        return None
    # TensorFlow computes its own limit from what is free at its start, so other processes lower that limit too.
    beyond = _beyond_limit(a, more)
    if beyond and a.limit_by is not LimitBy.TENSORFLOW:
        return None
    short = max(beyond, more - (a.card_free or 0) if a.card_free is not None else 0)
    return HeldByOthers(a.others, short) if 0 < short <= a.others else None


def truly_full(a: Anatomy) -> TrulyFull | None:
    """Return the cause if the bytes in use and those requested are together more than the limit or the card."""
    if a.asked is None or a.in_use is None:
        return None
    known = [size for size in (a.limit, a.card_total) if size is not None]
    needed = a.in_use + a.asked
    if not known or needed <= min(known):
        return None
    return TrulyFull(a.in_use, needed, min(known), by_limit=a.limit == min(known))


def card_full(a: Anatomy) -> CardFull | None:
    """Return the cause if the limit left room and the card did not: the process has more there than this pool."""
    more = lacking(a)
    if more is None or a.on_cpu or a.card_free is None or more <= a.card_free or _beyond_limit(a, more):
        return None
    return CardFull(more, a.card_free, a.others)


def _beyond_limit(a: Anatomy, more: int) -> int:
    """Return the bytes by which the limit is too low for a pool of *more* bytes more; 0 if it is high enough."""
    return 0 if a.limit is None or a.pool is None else max(0, a.pool + more - a.limit)


def unexplained(a: Anatomy) -> Unexplained:
    """Return the cause where no other rule holds: which figures are missing, or that they explain nothing."""
    figures = ((Figure.ASKED, a.asked), (Figure.POOL, a.pool), (Figure.LIMIT, a.limit))
    missing = tuple(figure for figure, value in figures if value is None)
    if a.device is None:
        gap = Gap.WHICH_POOL
    elif a.asynchronous:
        gap = Gap.CUDA_POOL
    elif missing:
        gap = Gap.FIGURES
    elif a.cached is not None and a.asked is not None and a.cached >= a.asked and a.largest_free is None:
        gap = Gap.NO_MAP
    else:
        gap = Gap.SHOULD_FIT
    return Unexplained(gap, missing if gap is Gap.FIGURES else (), a.on_cpu)


CAUSES: tuple[Callable[[Anatomy], Cause | None], ...] = (
    fragmented,
    held_back,
    held_by_others,
    truly_full,
    card_full,
)


def judge(a: Anatomy) -> Cause:
    """Return why the allocation failed, as far as the figures show."""
    return next((cause for rule in CAUSES if (cause := rule(a))), None) or unexplained(a)


def judge_pending(a: Anatomy) -> Scratch | Pending:
    """Return why there is no room, while TensorFlow still looks for some. The size requested may not be known yet."""
    if a.scratch:
        return Scratch()
    if a.asked is not None and not isinstance(cause := judge(a), Unexplained):
        return Pending(None, cause, known=True)
    least = a if a.asked is not None or a.more_than is None else replace(a, asked=a.more_than + 1)
    in_pieces = least.asked is not None and (a.cached or 0) > least.asked * _NOTABLY
    return Pending(a.cached if in_pieces else None, held_back(least) or held_by_others(least))


_LIMIT_OF = {
    LimitBy.TFMEMTOP: "that you set",
    LimitBy.SCRIPT: "that the script set",
    LimitBy.ENVIRONMENT: "that the environment set",
}


_FIGURES = {
    Figure.ASKED: "the requested size",
    Figure.POOL: "the size of the pool",
    Figure.LIMIT: "the pool's limit",
}


def _gap(cause: Unexplained) -> str:
    if cause.gap is Gap.WHICH_POOL:
        return "TensorFlow did not say which of the process's pools ran out"
    if cause.gap is Gap.CUDA_POOL:
        return "CUDA's own pool does not show its chunks"
    if cause.gap is Gap.FIGURES:
        return f"tfmemtop does not know {' and '.join(_FIGURES[figure] for figure in cause.missing)}"
    if cause.gap is Gap.NO_MAP:
        return "as much was free in the pool, and there is no map that shows whether it was fragmented"
    return "by these figures it should have fitted"
