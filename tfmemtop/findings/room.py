"""Why there was no room for a usual request: the limit, the card, other processes, fragmentation. Pure."""

from collections.abc import Callable

from msgspec.structs import replace

from tfmemtop.findings.cause import Cause, Key
from tfmemtop.findings.names import capital, holder_name
from tfmemtop.findings.remedy import Action, Remedy, raise_limit
from tfmemtop.findings.scene import GRADIENT, MANY
from tfmemtop.state.account import USUAL_CONTEXT, USUAL_LIBRARIES
from tfmemtop.state.anatomy import Anatomy, short_of
from tfmemtop.state.inventory import Inventory
from tfmemtop.state.lookup import LimitBy
from tfmemtop.tensorflow_text import NO_START, is_of_libraries
from tfmemtop.units import counted, format_bytes

BESIDE_POOLS = f"{format_bytes(USUAL_CONTEXT + USUAL_LIBRARIES)} on an H200"
"""The memory that CUDA's context and libraries take in a process, as text."""

Rule = Callable[[Anatomy], Cause | None]

_NEARLY = 0.8  # share of the limit, or of what other processes hold
_MUCH_FREE = 0.2  # share of the limit
_FAR_MORE = 4  # times what the pool could get
_LIBRARY = (
    "cuBLAS and cuDNN take memory of their own when they are first used. A pool that has the whole card, or other "
    "processes, leave less of it. A limit for the pool leaves some."
)
_SPARE = 0.05  # share of what is in use, below which a pool is full: some chunks are always left over


def no_room(a: Anatomy, peak: int | None = None) -> Cause:
    """Return why there was no room, as far as the figures show. *peak* are the most bytes in use until then."""
    cut = None if crowded_out(a) else fragmented(a)
    if cut is not None and (_needs_more(a, peak) or (a.cached or 0) < _SPARE * (a.in_use or 0)):
        short = next(filter(None, (rule(a) for rule in RULES if rule is not fragmented)), cut)
        free = f"{format_bytes(a.cached)} of the pool were free, in chunks of at most {format_bytes(a.largest_free)}."
        return short if short is cut else replace(short, evidence=(*short.evidence, free))
    return next(filter(None, (rule(a) for rule in RULES)), None) or unexplained(a)


def _needs_more(a: Anatomy, peak: int | None) -> bool:
    """Return whether more was needed than ever before, and nearly all that there is: a later step will need more."""
    if peak is None or a.limit is None or a.in_use is None or a.asked is None:
        return False
    return a.in_use + a.asked > max(peak, _NEARLY * a.limit)


def scratch(a: Anatomy) -> Cause | None:
    """The request was for scratch memory: TensorFlow itself writes that it can do without it."""
    if not a.scratch:
        return None
    return Cause(
        Key.SCRATCH,
        "This is harmless: it was scratch memory, which TensorFlow can do without.",
        remedies=(Action.SHOW_POOL,),
        explanation="Convolutions try several algorithms, each with its own scratch memory. TensorFlow leaves out "
        "those that do not fit.",
    )


def library(a: Anatomy) -> Cause | None:
    """cuBLAS or cuDNN found no memory for itself: it takes some beside TensorFlow's pool."""
    if not any(words in a.message.lower() for words in _LIBRARIES) or a.asked is not None:
        return None
    free = f": {format_bytes(a.card_free)} of the card were free" if a.card_free is not None else ""
    return Cause(
        Key.LIMIT_TOO_SMALL,
        f"A CUDA library found no memory beside TensorFlow's pool{free}.",
        remedies=(Action.SET_LIMIT, Action.USE_OTHER_GPU),
        evidence=(f"The pool held {format_bytes(a.pool)}.",) if a.pool is not None else (),
        explanation=_LIBRARY,
    )


def crowded_out(a: Anatomy) -> Cause | None:
    """Other processes hold most of the card: CUDA could not begin there, or the pool could get far less than they hold.

    A limit that was set is not the reason.
    """
    others = _known_others(a)
    if a.on_cpu or a.card_free is None or a.card_total is None or 2 * others < a.card_total:
        return None
    if any(words in a.message for words in NO_START) and a.card_free < short_of(a.card_total):
        return _of_others(a, f"{_others(a)}; {format_bytes(a.card_free)} were free.")
    could_get, rest = (a.pool or a.in_use or 0) + a.card_free, f"{format_bytes(a.card_free)} were free"
    if a.limit_by is not LimitBy.TENSORFLOW and _beyond_limit(a, lacking(a) or 0):
        return None  # it would not have fitted on an empty card
    if a.limit is not None and a.limit <= could_get:
        # TensorFlow's own limit is what others left of the card, unless a session asked for a share of it.
        if a.limit_by is not LimitBy.TENSORFLOW or others < _FAR_MORE * a.card_free:
            return None
        could_get, rest = a.limit, _pool_limit(a)
    return _of_others(a, f"{_others(a)}; {rest}.") if others >= _FAR_MORE * could_get else None


def on_full_card(a: Anatomy, message: str) -> Cause | None:
    """Return that the card was full as the script failed, or as it began to wait for room until then.

    That is for a reason that the error's *message* does not tell; after a crash it is empty. A card that the run itself
    has filled explains only errors of CUDA's libraries.
    """
    free, others = f"{format_bytes(a.card_free)} were free", _known_others(a)
    when = "as TensorFlow began to wait for room" if a.still else "when the script failed"
    own = (a.card_total or 0) - (a.card_free or 0) - others
    if others > own:
        return _of_others(a, f"The card was full {when}; {free}. {_others(a)}.")
    if not is_of_libraries(message):
        return None
    text = f"The card was full {when}: the script itself held {format_bytes(own)}; {free}."
    return Cause(Key.LIMIT_TOO_SMALL, text, bytes=own, remedies=(Action.SET_LIMIT,), explanation=_LIBRARY)


def fragmented(a: Anatomy) -> Cause | None:
    """Enough was free in the pool, but in pieces that were each too small."""
    if a.asked is None or a.cached is None or a.largest_free is None or not a.cached >= a.asked > a.largest_free:
        return None
    of_gpu = (
        ""
        if a.on_cpu
        else "cuda_malloc_async, which can join free pages; a pool that is one region from the start (growth off); "
    )
    large = a.limit is not None and a.asked >= _MUCH_FREE * a.limit
    pool = (higher_limit(a), Action.IN_PARTS if large else Action.FIX_SHAPES)
    return Cause(
        Key.FRAGMENTATION,
        f"The pool is fragmented: {format_bytes(a.cached)} were free, in chunks up to {format_bytes(a.largest_free)}.",
        bytes=a.cached,
        remedies=pool if a.on_cpu else (Action.USE_CUDA_ALLOCATOR, Action.SHOW_POOL),
        evidence=("Enough was free in all, but not in one chunk.",),
        explanation="BFC cuts its regions into chunks, and a tensor needs one chunk. A tensor in use keeps the free "
        f"chunks on its two sides apart. What helps: {of_gpu}shapes that do not change: a new tensor then fits where "
        "an old one was.",
    )


def between(cause: Cause, stock: Inventory, code: str) -> Cause:
    """Return *cause* with what lies between the free pieces of a fragmented pool, as *code* ran.

    That is what one holder keeps, if that is most of it, or what a tape needs until it has computed its gradients.
    """
    most = next((one for one in stock.kept if one.count >= MANY and one.bytes >= stock.in_use / 2), None)
    if cause.key is not Key.FRAGMENTATION:
        return cause
    if most is None and GRADIENT in code:
        evidence = "Gradients were being computed, for which a tape keeps the results of all operations."
        remedies = cause.remedies[0], Action.TAPE_EACH_STEP
        return replace(cause, remedies=remedies, evidence=(evidence, *cause.evidence))
    if most is None:
        return cause
    tensors, holder = counted(most.count, "tensor"), holder_name(most.holder)
    lies = f"Between the free chunks lies what {holder} keeps: {tensors}, {format_bytes(most.bytes)}."
    text = cause.text.replace("fragmented:", f"fragmented by {tensors} of {holder}:").replace("were free", "free")
    return replace(cause, text=text, evidence=(lies, *cause.evidence))


def held_back(a: Anatomy) -> Cause | None:
    """A limit that was set, by anything but TensorFlow itself, was too low, and there was room without it."""
    more = lacking(a)
    if a.limit_by is LimitBy.TENSORFLOW or a.limit is None or a.asked is None or more is None:
        return None
    if a.pool is None or a.pool + a.asked <= a.limit or a.card_free is None or a.card_free < more:
        return None
    where, limit = "machine" if a.on_cpu else "card", limit_text(a)
    text = f"{capital(limit)}." if a.asked > a.limit else f"{format_bytes(a.in_use)} were in use; {limit}."
    return Cause(
        Key.LIMIT_TOO_SMALL,
        text,
        bytes=a.asked,
        remedies=(higher_limit(a), Action.REDUCE_BATCH, Action.FIND_LIMIT),
        evidence=(f"The {where} had {format_bytes(a.card_free)} free.",),
        explanation=f"TensorFlow never exceeds the limit, even if the {where} has free memory.",
        mostly=(text, f"{capital(limit)}."),
    )


def higher_limit(a: Anatomy) -> Remedy:
    """Return the remedy of a higher limit than that of the pool."""
    if a.shares_card and a.limit_by is LimitBy.SCRIPT:  # --memory-limit is for the whole card
        return Remedy(f"in the script, raise the memory_limit of {a.device} above {format_bytes(a.limit)}")
    return raise_limit(a.limit, on_cpu=a.on_cpu)


def limit_text(a: Anatomy) -> str:
    """Return whose limit the pool has: ``your limit is 2.0 GiB``. If much was free below it, return how much,
    and its largest piece: a chunk of the pool, or what the pool has not taken yet.
    """
    whose, limit = _LIMIT_OF.get(a.limit_by, "its limit"), format_bytes(a.limit)
    if a.limit is not None and a.largest_free is not None and a.pool is not None:
        free, piece = a.limit - (a.in_use or 0), max(a.largest_free, a.limit - a.pool)
        if free >= max(a.asked or 0, _MUCH_FREE * a.limit):
            return f"{format_bytes(free)} of {limit} were free, at most {format_bytes(piece)} in one piece"
    return f"{whose} is {limit}"


def held_by_others(a: Anatomy) -> Cause | None:
    """Other processes hold as many bytes of the card as were lacking."""
    more = lacking(a)
    if more is None or not a.others or a.on_cpu:
        return None
    # TensorFlow computes its own limit from what is free at its start, so other processes lower that limit too.
    beyond = _beyond_limit(a, more)
    if beyond and a.limit_by is not LimitBy.TENSORFLOW:
        return None
    short = max(beyond, more - (a.card_free or 0) if a.card_free is not None else 0)
    if not 0 < short <= a.others:
        return None
    rest = f"; {_pool_limit(a)}" if beyond else ""
    return _of_others(a, f"{_others(a)}{rest}.", f"{format_bytes(short)} of that were lacking here.")


def truly_full(a: Anatomy) -> Cause | None:
    """What is in use and what was asked for are together more than the limit or the card."""
    known = [size for size in (a.limit, a.card_total) if size is not None]
    if a.asked is None or a.in_use is None or not known or (needed := a.in_use + a.asked) <= min(known):
        return None
    whole = min(known)
    text = "The pool is full: its limit is" if a.limit == whole else "The card is full: it has"
    return Cause(
        Key.LIMIT_TOO_SMALL,
        f"{text} {format_bytes(whole)}, and {format_bytes(needed - whole)} more were needed.",
        bytes=needed,
        remedies=(Action.REDUCE_BATCH,),
        evidence=(f"{format_bytes(a.in_use)} were in use.",),
        explanation="Weights, gradients, the optimizer's slots (Adam has two for each weight) and a step's activations "
        "share the pool. Only the activations grow with the batch.",
    )


def card_full(a: Anatomy) -> Cause | None:
    """The limit left room and the card did not: the process has more there than this pool."""
    more = lacking(a)
    if more is None or a.on_cpu or a.card_free is None or more <= a.card_free or _beyond_limit(a, more):
        return None
    others = "" if a.others == 0 else ", or other processes" if a.others is None else ", and other processes"
    return Cause(
        Key.LIMIT_TOO_SMALL,
        f"The card is full: {format_bytes(more)} more were needed, and {format_bytes(a.card_free)} were free.",
        bytes=more,
        remedies=(Action.LEAVE_ROOM,),
        evidence=(f"The process's other pools, its CUDA context and libraries hold the rest{others}.",),
        explanation="Each logical device has a pool of its own, and TensorFlow does not compare their limits with the "
        f"card. CUDA's context and libraries take more besides: {BESIDE_POOLS}.",
    )


def unexplained(a: Anatomy) -> Cause:
    """Say which figure is missing, or that the figures explain nothing."""
    figures = (("requested size", a.asked), ("size of the pool", a.pool), ("pool's limit", a.limit))
    missing = [f"the {name}" for name, value in figures if value is None]
    bounded = a.on_cpu or a.limit_by is not LimitBy.TENSORFLOW
    remedies: tuple[Remedy, ...] = (higher_limit(a),) if bounded else ()
    evidence = ""
    if a.device is None:
        reason = "TensorFlow did not say which of the process's pools ran out"
    elif a.asynchronous:
        reason = "CUDA's own pool does not show its chunks"
    elif missing:
        reason = f"tfmemtop does not know {' and '.join(missing)}"
        remedies = remedies or ((Action.SHOW_LINES,) if a.asked is None else ())
    elif a.cached is not None and a.asked is not None and a.cached >= a.asked and a.largest_free is None:
        reason = "as much was free in the pool, and there is no map that shows whether it was fragmented"
        remedies = remedies if a.on_cpu else (Action.USE_CUDA_ALLOCATOR,)
    else:
        reason, evidence = "by these figures it should have fitted", "The figures may be of another moment."
    return Cause(
        Key.UNKNOWN,
        f"The cause is unknown: {reason}.",
        remedies=remedies,
        evidence=(evidence,) if evidence else (),
        explanation="The probe, which reads the pool from inside, and TensorFlow's own lines in the output tell more.",
    )


def lacking(a: Anatomy) -> int | None:
    """Return the least number of bytes by which the pool would have had to grow; ``None`` if a figure is not known."""
    if a.asked is None or a.pool is None or a.in_use is None:
        return None
    return max(0, a.in_use + a.asked - a.pool)


def _of_others(a: Anatomy, text: str, *evidence: str) -> Cause:
    return Cause(
        Key.OTHERS,
        text,
        "other processes",
        _known_others(a),
        remedies=(Action.FEWER_ON_CARD,) if _of_run(a) else (Action.RUN_WHEN_FREE, Action.USE_OTHER_GPU),
        evidence=evidence,
        explanation="CUDA and its libraries take memory before TensorFlow's pool does. Unless a limit is set, the pool "
        "may use what was free on the card at the start, less a reserve. It cannot use what other processes hold. "
        "tfmemtop's screen lists them.",
    )


def _known_others(a: Anatomy) -> int:
    """Return the bytes that other processes hold of the card, at least."""
    return a.others if a.others is not None else a.largest_other[1] if a.largest_other else 0


def _of_run(a: Anatomy) -> bool:
    """Return whether nearly all that others hold of the card is held by processes of the same run."""
    return a.of_run > 0 and a.of_run >= _NEARLY * _known_others(a)


def _others(a: Anatomy) -> str:
    """Return who held what others held of the card: one process, if it has nearly all of that."""
    others, (pid, used) = _known_others(a), a.largest_other or (0, 0)
    run = " of this run" if _of_run(a) else ""
    if used < _NEARLY * others:
        return f"Other processes{run} held {format_bytes(a.of_run if run else others)} of the card"
    about = f", {a.other_program}" if a.other_program and not run else ""
    return f"Another process{run} (pid {pid}{about}) held {format_bytes(used)} of the card"


def _pool_limit(a: Anatomy) -> str:
    return f"the limit of TensorFlow's pool was {format_bytes(a.limit)}"


def _beyond_limit(a: Anatomy, more: int) -> int:
    """Return the bytes by which the limit is too low for a pool of *more* bytes more; 0 if it is high enough."""
    return 0 if a.limit is None or a.pool is None else max(0, a.pool + more - a.limit)


_LIMIT_OF = {
    LimitBy.TFMEMTOP: "your limit",
    LimitBy.SCRIPT: "the script's limit",
    LimitBy.ENVIRONMENT: "the environment's limit",
}

_LIBRARIES = "no blas for stream", "dnn library initialization failed", "status_not_initialized", "status_alloc_failed"

RULES: tuple[Rule, ...] = (scratch, crowded_out, library, fragmented, held_back, held_by_others, truly_full, card_full)
