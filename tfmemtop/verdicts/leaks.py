"""Memory in use that rises without end."""

from collections.abc import Iterator
from itertools import pairwise

from tfmemtop.state import State
from tfmemtop.state.steps import pace
from tfmemtop.units import format_bytes, format_duration
from tfmemtop.verdicts.finding import Finding
from tfmemtop.verdicts.look import MIB, Use, uses

LEAK_WINDOWS = 18
"""Of ten seconds: three minutes at least before anything is called a leak."""

LEAK_LOOKED_AT = 90
LEAK_AT_LEAST = 32 * MIB
LEAK_SHARE = 0.003
_STEADY = 0.9
_JUMP = 0.4


def leak(state: State) -> Iterator[Finding]:
    """Memory in use rises and rises, at its low points as at its high ones."""
    for use in [*uses(state), *uses(state, "CPU")]:
        if use.trend is None or use.reading is None or use.reading.in_use is None:
            continue
        windows = list(use.trend.long)[:-1][-LEAK_LOOKED_AT:]  # the newest is not complete
        lows, highs = [window.low for window in windows], [window.high for window in windows]
        if len(windows) < LEAK_WINDOWS or not (_rises(lows) and _rises(highs)):
            continue
        span_s = windows[-1].start - windows[0].start
        slope = min(_slope(lows), _slope(highs)) / (span_s / (len(windows) - 1))
        rise = slope * span_s
        if rise < max(LEAK_AT_LEAST, lows[-1] * LEAK_SHARE):
            continue
        room = _room(use, highs[-1])
        going = pace(use.hooked.steps, state.now)
        rate = going.whole if going else None  # over the whole run, as the rise is over most of it
        each = f", some {format_bytes(int(slope / rate))} a {going.unit.rstrip('s')}" if going and rate else ""
        ended = use.hooked.ended
        rises = "rose" if ended else "has been rising"
        text = (
            f"{use.place}: memory in use {rises} for {format_duration(span_s)}, at its low points too, by "
            f"{format_bytes(int(slope * 60))} a minute{each}: this looks like a leak"
        )
        if room is not None and room > 0:
            after = f", after some {room / slope * rate:,.0f} {going.unit}" if going and rate else ""
            used_up = "at that pace it would have been used up" if ended else "at this pace the memory is used up"
            text += f"; {used_up} in {format_duration(room / slope)}{after}"
        yield Finding(
            "warning",
            text + ".",
            "keep Python numbers of a step, not its tensors",
            f"Over {len(windows)} stretches of ten seconds the lowest use rose from {format_bytes(lows[0])} to "
            f"{format_bytes(lows[-1])}, the highest from {format_bytes(highs[0])} to {format_bytes(highs[-1])}. It may "
            "be wanted, such as a cache that fills. The usual reasons: losses, outputs or metrics kept in a list as "
            "tensors; a tf.function that is traced again and again, for Python numbers or changing shapes; variables "
            "or models made in a loop; a tape that is persistent and never deleted.",
            ("losses.append(float(loss))  # a number; the tensor's memory goes back to the pool",),
            "leak",
            use.place,
        )


def _room(use: Use, highest: int) -> int | None:
    """Bytes that can yet be used: up to the limit, and no more than the pool has and the card has free."""
    # What cuda_malloc_async calls its limit is none: it is what the pool keeps.
    rooms = [] if use.limit is None or use.asynchronous else [use.limit - highest]
    free = use.card.reading.free if use.card and use.card.reading else None
    if free is not None:
        pool = use.reading.pool if use.reading else None
        if pool is not None:
            rooms.append(free + max(0, pool - highest))
        elif not rooms:
            rooms.append(free)
    return min(rooms, default=None)


def _rises(values: list[int]) -> bool:
    """Steadily, not in a few jumps, and not ever less: what warms up or has stages does not count."""
    whole = values[-1] - values[0]
    if whole <= 0:
        return False
    lag = 3
    pairs = list(zip(values, values[lag:], strict=False))
    steady = sum(1 for before, after in pairs if after > before) >= _STEADY * len(pairs)
    jump = max(after - before for before, after in pairwise(values))
    middle = values[len(values) // 2]
    goes_on = values[-1] - middle >= (middle - values[0]) / 2
    return steady and goes_on and jump <= _JUMP * whole


def _slope(values: list[int]) -> float:
    """Bytes from one value to the next: the median over pairs half the series apart, which a spike does not move."""
    half = len(values) // 2
    slopes = sorted((after - before) / half for before, after in zip(values, values[half:], strict=False))
    return slopes[len(slopes) // 2]
