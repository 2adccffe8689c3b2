"""Memory that rises: whether a series of readings does, and the cause that what is in use is larger each time. Pure."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from operator import attrgetter

import msgspec

from tfmemtop.events import Holders
from tfmemtop.findings.cause import Cause, Key
from tfmemtop.findings.names import holder_name, operation_name, tensor_text
from tfmemtop.findings.remedy import Action
from tfmemtop.findings.scene import MANY, MOST, Scene
from tfmemtop.state.history import UseWindow
from tfmemtop.state.holders import Part
from tfmemtop.state.model import Hooked
from tfmemtop.state.windows import REMEMBERED, recorded, unpacked

_STEADY = 0.9
"""The least share of pairs of values in which the later one is higher. A script may pause, as for a validation."""

_JUMP = 0.4
"""The most of the whole rise that may come from one value to the next. More is a jump, such as a model that is made."""

_LAG = 3
"""The values of a pair are this many apart. So a use that rises only with every third value is steady too."""

_PAUSE_S, _LONGER = 5.0, 2
"""A rise that has paused for so many seconds, and so many times as long as ever before, has come to an end."""

_STEP_S = 1.0
"""Seconds in which a step may hold what it frees at its end."""

_FULL = 0.98  # share of the limit

HALF, _LATE, _STILL = 0.5, 0.75, 0.25
"""Two shares of the time. In a run that has not failed, memory is kept only if it still rose after the first, and after
the second by at least this share of that, or if its pauses have always been so long.
"""

_JUMPS, _OF_ALL = 3, 1 / 24
"""The least number of jumps that show how long the pauses between them are, and the least share of the rise in one."""

BEGINS = (0, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2)
"""Shares of the time that are left out at its beginning, in which a model is made or the script is in a first phase."""

EPOCHS = (3, 6)
"""How many windows are merged into one, for a rise that comes once an epoch. Three of these must hold an epoch."""

LEAST_WINDOWS = 16
"""With fewer windows, a slope cannot be distinguished from a few jumps."""


class Rise(msgspec.Struct, frozen=True):
    """Memory that rose from ``first`` to ``last`` bytes, from ``start`` to ``end`` in seconds, and was not freed again.

    ``rate`` is the slope in bytes a second. ``highs`` are the highest use at the beginning and at the end of that time,
    which was divided into ``windows`` windows.
    """

    start: float
    end: float
    first: int
    last: int
    rate: float
    highs: tuple[int, int]
    windows: int

    @property
    def span_s(self) -> float:
        return self.end - self.start

    @property
    def size(self) -> int:
        """The bytes by which memory rose, without those that the last step had not freed yet."""
        return min(self.last - self.first, int(self.rate * self.span_s))


def rise_until(histories: Iterable[Iterable[UseWindow]], end: float = float("inf")) -> Rise | None:
    """Return the steady rise that went on to the *end*, in seconds: over the whole time, or else over a later part.

    ``None`` if there is none. One of the *histories* must show the rise in at least :data:`LEAST_WINDOWS`.
    """
    for windows in histories:
        before = [window for window in windows if window.start < end]
        for share in BEGINS:
            if found := _rise(before[int(len(before) * share) :]):
                return found
    return None


def _rise(windows: Sequence[UseWindow]) -> Rise | None:
    if len(windows) < LEAST_WINDOWS:
        return None
    kept = retained(window.low for window in windows)
    if not rises(kept):
        return None
    first, last = windows[0], windows[-1]
    highs = first.high, last.high
    return Rise(first.start, last.start, kept[0], kept[-1], slope(windows, kept), highs, len(windows))


def retained(lows: Iterable[int]) -> list[int]:
    """Return for each moment the bytes that stayed in use ever after, so without those that a step frees at its end."""
    return list(accumulate(reversed(list(lows)), min))[::-1]


def risen(windows: Sequence[UseWindow], left_out: float) -> int:
    """Return by how many bytes memory rose for good in *windows*, less the share of them *left_out* at the beginning.

    A model is made at the beginning, so memory rises there in any case.
    """
    lows = retained(window.low for window in windows)
    return max(0, lows[-1] - lows[int(len(windows) * left_out)])


def settled(windows: Sequence[UseWindow], seconds: float = _STEP_S) -> Sequence[UseWindow]:
    """Return *windows*, the newest *seconds* of them with the lowest use of all of these: a step is no rise."""
    newest = sum(one.start > windows[-1].start - seconds for one in windows)
    low = min(map(_low, windows[-newest:]))
    return [*windows[:-newest], *(UseWindow(one.start, low, one.high) for one in windows[-newest:])]


def of_rounds(windows: Sequence[UseWindow]) -> float:
    """Return the seconds at the end in which a round of the script's may hold what it frees then, as those before did.

    They are twice as many as memory was held for, in the later half: a quarter of the rise, or more.
    """
    later = windows[len(windows) // 2 :]
    kept = retained(map(_low, later))
    held, since = _STEP_S / _LONGER, None
    for window, low in zip(later, kept, strict=True):
        held = max(held, window.start - (window.start if since is None else since))
        if window.low - low < (kept[-1] - kept[0]) / 4:
            since = None
        elif since is None:
            since = window.start
    return _LONGER * held


def merged(windows: Sequence[UseWindow], times: int) -> list[UseWindow]:
    """Merge each *times* windows into one, counted back from the newest.

    A use that rises once in an epoch then rises in each window that contains an epoch.
    """
    first = len(windows) % times
    groups = (windows[at : at + times] for at in range(first, len(windows), times))
    return [UseWindow(group[0].start, min(map(_low, group)), max(map(_high, group))) for group in groups]


_low, _high = attrgetter("low"), attrgetter("high")


def may_rise(windows: Sequence[UseWindow], times: int = 1) -> bool:
    """Return whether the memory may have risen steadily in :func:`merged` windows, by the first, middle and last.

    Most memory in use does not rise, and is looked at every second.
    """
    count, first = divmod(len(windows), times)
    three = [windows[at : at + times] for at in (first, first + count // 2 * times, len(windows) - times)]
    return count > 0 and all(
        _goes_on(*(highest(map(size, group)) for group in three)) for highest, size in ((min, _low), (max, _high))
    )


def rises(values: list[int]) -> bool:
    """Return whether *values* rise steadily: not in a few jumps, nor ever more slowly, as while a script warms up."""
    if not _goes_on(values[0], values[len(values) // 2], values[-1]):
        return False
    whole = values[-1] - values[0]
    pairs = list(zip(values, values[_LAG:], strict=False))
    steady = sum(1 for before, after in pairs if after > before) >= _STEADY * len(pairs)
    jump = max(after - before for before, after in pairwise(values))
    return steady and jump <= _JUMP * whole


def _goes_on(first: int, middle: int, last: int) -> bool:
    return last > first and last - middle >= (middle - first) / 2


def has_stopped(windows: Sequence[UseWindow], limit: int | None) -> bool:
    """Return whether memory that rose in *windows* has paused at their end for much longer than before.

    A buffer is full then, or a phase is over. So it rises no more, though it did so for most of the time. Where it has
    come to the *limit*, it lacks room to rise.
    """
    if limit is not None and windows[-1].high >= _FULL * limit:
        return False
    jumps = _jumps(windows)
    longest = max((after - before for before, after in pairwise(jumps)), default=float("inf"))
    return bool(jumps) and windows[-1].start - jumps[-1] > max(_PAUSE_S, _LONGER * longest)


def still_rises(windows: Sequence[UseWindow]) -> bool:
    """Return whether memory still rose in the last quarter of *windows*."""
    return risen(windows, _LATE) >= _STILL * risen(windows, HALF)


def goes_on(windows: Sequence[UseWindow]) -> bool:
    """Return whether memory still rose at the end of *windows*, or its pauses have always been so long."""
    return still_rises(windows) or comes_again(windows)


def comes_again(windows: Sequence[UseWindow]) -> bool:
    """Return whether memory rises in jumps, and the newest two pauses are not much longer than those before."""
    jumps = _jumps(windows, _OF_ALL)
    pauses = [after - before for before, after in pairwise([*jumps[-_JUMPS - 1 :], windows[-1].start])]
    return len(jumps) >= _JUMPS and max(pauses[-2:]) <= max(_PAUSE_S, _LONGER * max(pauses[:-2]))


def _jumps(windows: Sequence[UseWindow], share: float = 0.0) -> list[float]:
    """Return when memory rose for good in *windows*, in seconds: each time by at least half of the largest jump.

    That is also at least the *share* of the whole rise.
    """
    kept = retained(window.low for window in windows)
    least = max(max(after - before for before, after in pairwise(kept)) / 2, share * (kept[-1] - kept[0]))
    level, higher = kept[0], []
    for window, value in zip(windows, kept, strict=True):
        if value >= level + least:
            level = value
            higher.append(window.start)
    return higher


def slope(windows: Sequence[UseWindow], values: Sequence[int]) -> float:
    """Return the slope in bytes a second: the median over pairs half the series apart. A spike does not change it."""
    half = len(values) // 2
    points = list(zip((window.start for window in windows), values, strict=True))
    pairs = zip(points, points[half:], strict=False)
    slopes = sorted((after - before) / (end - start) for (start, before), (end, after) in pairs)
    return slopes[len(slopes) // 2]


Shape = tuple[int, ...]


def larger_each_time(scene: Scene, rise: int | None = None) -> Cause | None:
    """Most of what is in use was made by operations whose results have grown step by step.

    Where memory rose by *rise* bytes, and there would have been room without that: most of these, held in Python.
    """
    stock, singles = scene.stock, {tuple(one.shape): one.name for one in scene.stock.singles}
    windows = recorded(scene.hooked.windows.get(stock.device))  # in the order of time
    made = [found for window in windows if (found := _of_several_shapes(window))]
    parts = [(part, before) for part in stock.parts if (before := _before(part, made, stock.shapes))]
    size = sum(part.bytes for part, _ in parts)
    if not parts:
        return None
    part, before = max(parts, key=lambda one: (bool(one[0].python_name), one[0].bytes))
    # The look may have found an earlier result of the operation, which has gone.
    name = part.python_name or next((singles[shape] for shape in before if shape in singles), "")
    if size < MOST * (rise if rise is not None and name else stock.in_use):
        return None
    held = holder_name(name) if name else f"What {operation_name(part.operation)} makes"
    sizes = f"from {tensor_text(list(before[0]), None)} to {tensor_text(list(part.shape or ()), None)}"
    return Cause(
        Key.GROWN_BY_COPYING if name else Key.STEP_LARGER,
        f"{held} grew {sizes}; what grew takes {scene.sized(min(size, stock.in_use))}.",
        name,
        size,
        len(parts),
        (Action.CONCAT_ON_HOST if name else Action.BOUND_REQUEST,),
        ("x = tf.concat([x, part], 0)[-1000:]  # no more than is needed",) if name else (),
    )


@lru_cache(REMEMBERED)
def _of_several_shapes(window: Holders) -> dict[str, list[Shape]]:
    """Return the shapes of the results of each operation in the order of time, where there are different ones."""
    course = unpacked(window)
    kinds = [(course.name(kind), tuple(kind.shape or ())) for kind in course.kinds]
    different = Counter(name for name, _ in set(kinds))
    made: dict[str, list[Shape]] = {name: [] for name, number in different.items() if number > 1}
    for name, shape in (kinds[place] for place in course.holdings if made):
        if name in made:
            made[name].append(shape)
    return made


def _before(part: Part, made: list[dict[str, list[Shape]]], variables: Collection[Shape]) -> list[Shape]:
    """Return the shapes that led to that of *part*: each larger than the one before, in one dimension. Empty if few.

    The shapes of *variables* are those of their gradients, which an operation of the same name may make.
    """
    last = part.shape or ()
    firsts: list[Shape] = []
    seen: dict[Shape, None] = {}
    for window in made:
        like = [one for one in window.get(part.operation, ()) if _differ(one, last) <= 1 and one not in variables]
        if last in like:  # a window may have gone on after that moment
            like = like[: like.index(last)]
        firsts += like[:1]
        seen |= dict.fromkeys(like)
        if any(_differ(old, new) > 1 or old > new for each in (firsts, [*like, last]) for old, new in pairwise(each)):
            return []
    return [*seen] if len(seen) >= MANY else []


def _differ(one: Shape, other: Shape) -> int:
    """Return in how many dimensions two shapes differ; 2 if they have other numbers of them."""
    return sum(old != new for old, new in zip(one, other, strict=True)) if len(one) == len(other) else 2


def in_pieces(hooked: Hooked, device: str | None, size: int) -> bool:
    """Return whether half of *size* bytes may consist of many chunks of like size, by the map of the full pool.

    True also if there is no map of that moment.
    """
    pool = hooked.pools.get(device) if device else None
    sizes = pool.exhausted.sizes if pool and pool.exhausted else []
    return not sizes or sum(count << power + 1 for power, count in enumerate(sizes) if count >= MANY) >= size / 2
