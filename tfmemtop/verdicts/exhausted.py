"""Why an allocation failed: one small rule a verdict, the first that holds is told."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from tfmemtop.state.anatomy import Anatomy
from tfmemtop.units import format_bytes

_OLD_S = 2.0
"""Figures older than this may be of another moment: in use moves thousands of times a second."""

_NOTABLY = 1.05
"""So much more free in pieces than in one, and they are worth a word."""

_TRIES = "TensorFlow tries for 10 s before it fails; if no error follows, it was scratch memory, and harmless."


@dataclass(frozen=True, slots=True)
class Verdict:
    """``kind`` is one word; ``text`` a sentence or two; ``remedy`` names a key."""

    kind: str
    text: str
    remedy: str


def lacking(a: Anatomy) -> int | None:
    """Bytes that the pool would have had to take in addition, at the least."""
    if a.asked is None or a.pool is None or a.in_use is None:
        return None
    return max(0, a.in_use + a.asked - a.pool)


def fragmented(a: Anatomy) -> Verdict | None:
    """Enough was free in the pool, but in pieces that were each too small."""
    if a.asked is None or a.cached is None or a.largest_free is None:
        return None
    if not a.cached >= a.asked > a.largest_free:
        return None
    text = (
        f"Fragmented: {format_bytes(a.cached)} of the pool were free, more than was asked for, but the largest free "
        f"chunk was {format_bytes(a.largest_free)}. In one chunk it would have fitted."
    )
    if a.on_cpu:
        return Verdict("fragmented", text, "[L] a larger pool; fixed shapes and sizes cut it up less")
    return Verdict(
        "fragmented", text, "[A] cuda_malloc_async for the next run, which joins free chunks; [M] shows them"
    )


def held_back(a: Anatomy) -> Verdict | None:
    """Somebody set a limit; without it there would have been room."""
    more = lacking(a)
    if a.limit_by == "tensorflow" or a.limit is None or a.asked is None or a.in_use is None or more is None:
        return None
    if a.pool is None or a.pool + a.asked <= a.limit or a.card_free is None or a.card_free < more:
        return None
    who = {"tfmemtop": "that you set here", "script": "that the script set", "environment": "that the environment set"}
    where = "the machine" if a.on_cpu else "the card"
    text = (
        f"Held back by the limit of {format_bytes(a.limit)} {who[a.limit_by]}: {where} had "
        f"{format_bytes(a.card_free)} free."
    )
    least = format_bytes(a.in_use + a.asked)
    return Verdict("held_back", text, f"[L] a limit above {least} for the next run, [R] starts it")


def held_by_others(a: Anatomy) -> Verdict | None:
    """Other processes hold what was lacking."""
    more = lacking(a)
    if more is None or not a.others or a.on_cpu:
        return None
    # TensorFlow computes its own limit from what is free at its start: others lower that too.
    beyond = _beyond_limit(a, more)
    if beyond and a.limit_by != "tensorflow":
        return None
    short = max(beyond, more - (a.card_free or 0) if a.card_free is not None else 0)
    if not 0 < short <= a.others:
        return None
    text = (
        f"Held by others: other processes have {format_bytes(a.others)} of the card; "
        f"{format_bytes(short)} of that were lacking here."
    )
    return Verdict("held_by_others", text, "[V] another GPU for the next run; the process table shows who holds it")


def truly_full(a: Anatomy) -> Verdict | None:
    """What is in use and what was asked for are more than there is."""
    if a.asked is None or a.in_use is None:
        return None
    known = [size for size in (a.limit, a.card_total) if size is not None]
    if not known or a.in_use + a.asked <= min(known):
        return None
    whole = "the pool may hold" if a.limit is not None and a.limit == min(known) else "the card has"
    text = (
        f"Truly full: with {format_bytes(a.in_use)} in use it would have come to {format_bytes(a.in_use + a.asked)}, "
        f"and {whole} {format_bytes(min(known))}."
    )
    return Verdict("truly_full", text, "[E] smaller batches for the next run; mixed precision halves activations")


def card_full(a: Anatomy) -> Verdict | None:
    """The limit left room, the card did not: the process has more there than this pool."""
    more = lacking(a)
    if more is None or a.on_cpu or a.card_free is None or more <= a.card_free or _beyond_limit(a, more):
        return None
    text = (
        f"The card was full: {format_bytes(more)} more were needed, and {format_bytes(a.card_free)} of it were free. "
        "The process's other pools, its CUDA context and libraries hold the rest"
    )
    others = "" if a.others == 0 else ", or other processes" if a.others is None else ", and other processes"
    return Verdict("card_full", f"{text}{others}.", "[L] limits that together leave room on the card")


def _beyond_limit(a: Anatomy, more: int) -> int:
    """Bytes by which the limit is too low for *more* in the pool."""
    return 0 if a.limit is None or a.pool is None else max(0, a.pool + more - a.limit)


def untold(a: Anatomy) -> Verdict:
    """Nothing else holds: say what is missing, or that the figures do not explain it."""
    facts = (("how much was asked for", a.asked), ("how full the pool was", a.pool), ("its limit", a.limit))
    missing = [word for word, value in facts if value is None]
    remedy = "[L] gives the next run another limit"
    if a.device is None:
        return Verdict("untold", "Which of its pools it was is not known, so neither is why.", remedy)
    if a.asynchronous:
        return Verdict("untold", "CUDA's own pool does not tell how it is cut up, so why is not known.", remedy)
    if missing:
        return Verdict(
            "untold",
            f"Why cannot be told: not known {'is' if len(missing) == 1 else 'are'} {' and '.join(missing)}.",
            remedy,
        )
    if a.cached is not None and a.asked is not None and a.cached >= a.asked and a.largest_free is None:
        text = "As much was free in the pool: it may have been fragmented, but there is no map of it to tell."
        return Verdict("untold", text, "[A] cuda_malloc_async for the next run" if not a.on_cpu else remedy)
    return Verdict("untold", "By these figures it should have fitted: they may be of another moment.", remedy)


RULES: tuple[Callable[[Anatomy], Verdict | None], ...] = (
    fragmented,
    held_back,
    held_by_others,
    truly_full,
    card_full,
)


def judge(a: Anatomy) -> Verdict:
    """Why it failed, as far as the figures tell."""
    return next((verdict for rule in RULES if (verdict := rule(a))), None) or untold(a)


def scratch(a: Anatomy) -> Verdict | None:
    """TensorFlow itself calls it no failure."""
    if not a.scratch:
        return None
    text = "It was scratch memory that TensorFlow can do without: harmless, though more room might make it faster."
    return Verdict("scratch", text, "[M] shows the pool")


def foresee(a: Anatomy) -> Verdict:
    """Why there is no room, while TensorFlow still looks for some and nobody has said how much was asked for."""
    if harmless := scratch(a):
        return harmless
    least = a if a.asked is not None or a.more_than is None else replace(a, asked=a.more_than + 1)
    text, remedy = "What is in use and what was asked for are together too much.", "[M] shows the pool"
    if limited := held_back(least):
        text, remedy = limited.text, "[L] a higher limit for the next run, [R] starts it; [M] shows the pool"
    elif others := held_by_others(least):
        text, remedy = others.text, others.remedy
    if least.asked is not None and (a.cached or 0) > least.asked * _NOTABLY:
        text = f"Fragmented, if less than {format_bytes(a.cached)} was asked for. Else: {text}"
    return Verdict("waiting", f"{text} {_TRIES}", remedy)


def doubts(a: Anatomy) -> str:
    """A sentence on what makes the figures uncertain; empty if nothing does."""
    if a.reading_age_s is not None and a.reading_age_s > _OLD_S:
        return f"These figures are {a.reading_age_s:.0f} s older than the failure, so this may be wrong."
    if a.map_age_s is not None and a.map_age_s > _OLD_S and a.largest_free is not None:
        return f"The largest free chunk was read {a.map_age_s:.0f} s before; it may have been another then."
    return ""


def asked_for(a: Anatomy) -> str:
    """``Conv2D asked for 64.0 MiB, a tensor of [8,64] float``, as far as it is known."""
    who = (a.operation or "the script") + (f" at {a.line}" if a.line else "")
    if a.asked is None and a.more_than:
        return f"{who} asked for more than {format_bytes(a.more_than)}"
    if a.asked is None:
        return f"{who} asked for more than there was room for"
    text = f"{who} asked for {format_bytes(a.asked)}"
    return text + (f", a tensor of {a.shape}" if a.shape else "")


def stood(a: Anatomy) -> str:
    """The figures of that moment, those that are known."""
    others = a.others if a.others else None
    facts = [
        ("in use", a.in_use),
        ("cached", a.cached),
        ("largest free chunk", a.largest_free),
        ("limit", a.limit),
        ("other processes", others),
    ]
    return ", ".join(f"{name} {format_bytes(size)}" for name, size in facts if size is not None)
