"""The text of findings about allocations that failed, and why they failed."""

import re
from functools import singledispatch

from tfmemtop.rules.causes import (
    CardFull,
    Cause,
    Figure,
    Fragmented,
    Gap,
    HeldBack,
    HeldByOthers,
    Pending,
    Scratch,
    TrulyFull,
    Unexplained,
)
from tfmemtop.rules.leaks import Leaked
from tfmemtop.rules.memory import AllocationFailed, CrashedWhenFull, Doubt, NoRoom, Old
from tfmemtop.rules.replayed import WouldPass
from tfmemtop.state.anatomy import Anatomy
from tfmemtop.state.lookup import LimitBy
from tfmemtop.units import format_bytes
from tfmemtop.words.counting import spoken
from tfmemtop.words.findings.card import BESIDE_POOLS
from tfmemtop.words.findings.leaks import WHY_IT_LEAKS, holding, keep_less, kept_by_windows
from tfmemtop.words.findings.saying import Said, say
from tfmemtop.words.limits import typed
from tfmemtop.words.places import named_spot
from tfmemtop.words.requests import tensor_text
from tfmemtop.words.who_holds import held


@say.register
def _(found: AllocationFailed) -> Said:
    a, cause = found.anatomy, cause_of(found.cause)
    failed = f"Out of memory{_where(found)}: {_asked_for(a)}."
    # Without size and operation, TensorFlow's own message is the only information.
    if a.asked is None and a.operation is None and a.message:
        failed = f"Out of memory{_where(found)}. TensorFlow says: {a.message.splitlines()[0]}."
    holder = holding(found.holder) if found.holder else ""
    enough = would_pass(found.would_pass) if found.would_pass else ""
    waited = "The request then waited 10 s for room and failed." if isinstance(found.cause, Leaked) else ""
    figures = (
        "" if found.collected else holder,
        enough,
        cause.figures,
        waited,
        _tensor(a),
        _figures(a),
        held(a.held) if a.held else "",
        _doubt(found.doubt),
    )
    code = cause.code or (keep_less(found.holder) if found.collected else ())
    return Said(
        _joined(failed, holder if found.collected else "", cause.headline), cause.explanation, code, _joined(*figures)
    )


def would_pass(enough: WouldPass) -> str:
    """Return which limit, growth or batch would have been enough."""
    limits = [
        f"{typed(least.surely)}{f' with growth {growth}' if enough.on_gpu else ''} (at least {typed(least.at_least)})"
        for growth, least in (("on", enough.on), ("off", enough.off))
        if least is not None
    ]
    said = f"The allocations of run {enough.run}, replayed, surely fit under a limit of {' or of '.join(limits)}."
    if enough.same_limit is not None:
        said += f" Under this limit they fit with growth {enough.same_limit}."
    if enough.share is not None:
        said += f" With this limit ~{100 * enough.share:.0f} % of the batch would fit."
    return said


def _joined(*sentences: str) -> str:
    return " ".join(filter(None, sentences))


@say.register
def _(found: NoRoom) -> Said:
    a, cause = found.anatomy, cause_of(found.cause)
    return Said(
        f"No room{_where(found)}: {_asked_for(a)}. {cause.headline}",
        cause.explanation,
        figures=_joined(cause.figures, _tensor(a), _figures(a), _why_no_size(a), held(a.held) if a.held else ""),
    )


@say.register
def _(found: CrashedWhenFull) -> Said:
    closest = found.closest
    at = f" at {named_spot(closest.line)}" if closest.line else ""
    full = f"At least {format_bytes(closest.highest)} were in use"
    if closest.pool is not None:
        full += f" in a pool of {format_bytes(closest.pool)}"
    full = _joined(f"{full}.", held(closest.held) if closest.held else "")
    waited = ""
    if found.waited:
        waited = f"Its use had not changed for {closest.still_s:.0f} s, as happens while TensorFlow waits for room. "
    headline = f"The script probably crashed{at} because TensorFlow's CPU pool ran out"
    if found.leaked is not None:
        leak = cause_of(found.leaked)
        return Said(f"{headline}. {leak.headline}", leak.explanation, leak.code, f"{leak.figures} {full}")
    return Said(
        f"{headline}: its limit is {format_bytes(closest.limit)}.",
        "TensorFlow's allocator returns nothing when its limit is reached, and some operations write there without a "
        "check. This was seen with TensorFlow 2.21 in a convolution, without tfmemtop as well.",
        figures=f"{full} {waited}Some operations of TensorFlow crash there instead of raising an error.",
    )


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


def _doubt(doubt: Doubt | None) -> str:
    if doubt is None:
        return ""
    if doubt.old is Old.ALL:
        return f"These figures are {doubt.age_s:.0f} s older than the failure, so this may be wrong."
    return f"The largest free chunk was read {doubt.age_s:.0f} s before the failure; it may have been different then."


@singledispatch
def cause_of(cause: Cause) -> Said:
    """Return the text of *cause*.

    Raises:
        TypeError: There is no text for causes of that class.
    """
    raise TypeError(type(cause).__name__)


@cause_of.register
def _(cause: Fragmented) -> Said:
    of_gpu = (
        ""
        if cause.on_cpu
        else "cuda_malloc_async, which can join free pages; a pool that is one region from the start (growth off); "
    )
    return Said(
        f"The pool is fragmented: {format_bytes(cause.cached)} of it were free, but no free chunk was larger than "
        f"{format_bytes(cause.largest_free)}.",
        "BFC cuts its regions into chunks, and a tensor needs one chunk. Tensors that live long keep the free chunks "
        f"between them apart. What helps: {of_gpu}shapes that do not change, because a new tensor then fits where an "
        "old one was.",
        figures="In one chunk it would have fitted.",
    )


@cause_of.register
def _(cause: Leaked) -> Said:
    each = f", by {format_bytes(cause.each)} a {cause.unit.rstrip('s')}" if cause.each is not None else ""
    rise = cause.rise
    rose = f"rose steadily for {spoken(max(1.0, rise.span_s))}{each}"
    figures = f"Memory that was never freed rose from {format_bytes(rise.first)} to {format_bytes(rise.last)}."
    if cause.holder is None:
        headline = f"A leak filled the pool: memory in use {rose}."
    else:
        whole = f" of the limit of {format_bytes(cause.limit)}" if cause.limit is not None else ""
        tensors = holding(cause.holder).rstrip(".")
        headline, figures = f"{tensors}{whole}: a leak.", f"Memory in use {rose}. {figures}"
    return Said(headline, WHY_IT_LEAKS, keep_less(cause.holder), _joined(figures, kept_by_windows(cause.grown)))


_LIMIT_OF = {
    LimitBy.TFMEMTOP: "that you set",
    LimitBy.SCRIPT: "that the script set",
    LimitBy.ENVIRONMENT: "that the environment set",
}


@cause_of.register
def _(cause: HeldBack) -> Said:
    where = "machine" if cause.on_cpu else "card"
    return Said(
        f"Stopped by the limit of {format_bytes(cause.limit)} {_LIMIT_OF[cause.limit_by]}.",
        f"TensorFlow never exceeds the limit, even if the {where} has free memory.",
        figures=f"The {where} had {format_bytes(cause.free)} free.",
    )


@cause_of.register
def _(cause: HeldByOthers) -> Said:
    return Said(
        f"Other processes hold {format_bytes(cause.others)} of the card.",
        "TensorFlow's own limit is what was free on the card when TensorFlow started, less a reserve. It cannot get "
        "what other processes hold. The process table shows who they are.",
        figures=f"{format_bytes(cause.short)} of that were lacking here.",
    )


@cause_of.register
def _(cause: TrulyFull) -> Said:
    whole = "The pool is full: its limit is" if cause.by_limit else "The card is full: it has"
    return Said(
        f"{whole} {format_bytes(cause.whole)}, and {format_bytes(cause.needed - cause.whole)} more were needed.",
        "The memory in use holds tensors that are still needed: weights, the optimizer's copies, and the activations "
        "of one step, which grow with the batch.",
        figures=f"{format_bytes(cause.in_use)} were in use.",
    )


@cause_of.register
def _(cause: CardFull) -> Said:
    others = "" if cause.others == 0 else ", or other processes" if cause.others is None else ", and other processes"
    return Said(
        f"The card is full: {format_bytes(cause.more)} more were needed, and {format_bytes(cause.free)} were free.",
        "Each logical device has a pool of its own, and TensorFlow does not compare their limits with the card. CUDA's "
        f"context and libraries take more besides: {BESIDE_POOLS}.",
        figures=f"The process's other pools, its CUDA context and libraries hold the rest{others}.",
    )


@cause_of.register
def _(cause: Scratch) -> Said:
    return Said(
        "This is harmless: it was scratch memory, which TensorFlow can do without.",
        "Convolutions try several algorithms, each with its own scratch memory. TensorFlow leaves out those that do "
        "not fit.",
        figures="With more room it may be faster.",
    )


_FIGURES = {
    Figure.ASKED: "the requested size",
    Figure.POOL: "the size of the pool",
    Figure.LIMIT: "the pool's limit",
}


@cause_of.register
def _(cause: Unexplained) -> Said:
    return Said(
        f"The cause is unknown: {_gap(cause)}.",
        "The probe, which reads the pool from inside, and TensorFlow's own lines in the output tell more.",
        figures="The figures may be of another moment." if cause.gap is Gap.SHOULD_FIT else "",
    )


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


@cause_of.register
def _(cause: Pending) -> Said:
    otherwise = Said("What is in use and the request together are more than there is.")
    if cause.otherwise is not None:
        otherwise = cause_of(cause.otherwise)
    headline = otherwise.headline
    if cause.cached is not None:
        headline = f"If it asked for less than {format_bytes(cause.cached)}, the pool is fragmented. If not: {headline}"
    waits = "TensorFlow tries for 10 s before it fails. If no error follows, it found room after all."
    return Said(
        headline,
        otherwise.explanation
        if cause.known
        else "If an error follows, it names the size that was asked for, which shows the cause.",
        figures=f"{otherwise.figures} {waits}".lstrip(),
    )
