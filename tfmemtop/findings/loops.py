"""Why a single request was too large: a loop of a graph keeps more rounds than before. Pure."""

import re
from collections import Counter
from statistics import median_low

from tfmemtop.events import Holders
from tfmemtop.findings.cause import PREFIX, Cause, Key, fitting
from tfmemtop.findings.names import operation_name
from tfmemtop.findings.remedy import Action
from tfmemtop.findings.request import Request, at_line
from tfmemtop.state.holders import By, standing
from tfmemtop.state.model import Hooked
from tfmemtop.state.windows import recorded, unpacked
from tfmemtop.units import format_bytes

_IN_LOOP = re.compile(r"(^|/)while(_\d+)?/body/")
_PUSHED = "TensorListPushBack"
_ROUNDS, _MORE_ROUNDS = 8, 1.1  # at least so many, and so many times those before
_OF_LOOP = 0.1  # share of the bytes of a loop's largest operation from which on another counts


def longer_loop(request: Request) -> Cause | None:
    """A loop of a graph runs for more rounds than before, or at all, and what each has computed is still there."""
    parts = [part for part in request.stock.parts if _IN_LOOP.search(part.operation)]
    size = sum(part.bytes for part in parts)
    if not parts or size * 2 < request.stock.in_use:
        return None
    counts, sizes = Counter[str](), Counter[str]()
    for part in parts:
        counts[part.operation] += part.count
        sizes[part.operation] += part.bytes
    # An operation may have several results a round, such as a split, or none in some.
    rounds, operation = median_low(
        (counts[name], name) for name in sizes if sizes[name] >= _OF_LOOP * max(sizes.values())
    )
    windows = recorded(request.hooked.windows.get(request.stock.device))
    newest = max((window.began for window in windows if window.began <= request.t), default=0.0)
    # What ended later, or without a function, may be of the step that found no room.
    before = [window for window in windows if window.function and window.ended <= min(newest, request.began)]
    past = [found for window in before if (found := _ended_rounds(window, request.hooked, operation))]
    most = max(past, default=0)
    if rounds < _ROUNDS or rounds < _MORE_ROUNDS * most:
        return None
    # The loop of a gradient reads what the loop has pushed on lists. A TensorArray of the script's is no such list.
    why = "for the gradient" if any(_PUSHED in part.operation for part in parts) else "until it ends"
    name = request.anatomy.operation or ""
    who = at_line(operation_name(name) if name.startswith("__") else "TensorFlow", request.anatomy.line)
    results, sized = f"{who} keeps the results of {rounds:,} rounds of a loop", format_bytes(size)
    told = f" (before, at most {most:,}): {sized}." if most else f": {sized}."
    texts = f"{results} {why}{told}", f"{results}{told}", f"{who} keeps what {rounds:,} rounds of a loop made{told}"
    remedy = Action.SHORTER_LOOP
    return Cause(
        Key.STEP_LARGER if most else Key.LIMIT_TOO_SMALL,
        fitting(*texts, room=PREFIX, brief=remedy.brief),
        who,
        size,
        rounds,
        (remedy,),
        evidence=(f"They are kept {why}: each round needs as much again.",),
    )


def _ended_rounds(window: Holders, hooked: Hooked, operation: str) -> int:
    """Return the rounds of a loop with *operation* at the peak of *window*; zero if the loop had not ended with it."""
    last = len(unpacked(window).times) - 1
    peak, end = (
        sum(part.count for row in rows.holders for part in row.parts if part.operation == operation)
        for rows in (standing(window, hooked, By.OPERATION), standing(window, hooked, By.OPERATION, last))
    )
    return peak if end < peak else 0
