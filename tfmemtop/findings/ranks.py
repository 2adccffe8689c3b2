"""Find which rank of a job differs from the others, and how. Pure.

A rank is compared with the median of all ranks, or if there are two, with the other one. A difference is not reported
if it is smaller than the usual differences between the ranks.
"""

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from statistics import median
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from tfmemtop.events.runs import Ending
from tfmemtop.state.comparable import ENOUGH_S, ENOUGH_STEPS
from tfmemtop.state.effective_settings import EffectiveSettings
from tfmemtop.state.overlay import Measure
from tfmemtop.state.ranks import Along, Laid, Rank
from tfmemtop.units import MIB

_SHARE = 0.05
_LEAST = 16 * MIB
"""Up to this share of the usual figure, or up to so many bytes, a difference does not count."""
_SPREADS = 3
"""A difference counts only if the rank is so many times as far from the median as ranks usually are."""


def unusual(apart: float, usual: float, spread: float) -> bool:
    """Return whether a size *apart* bytes from the *usual* one counts, where ranks differ by *spread* anyway."""
    return abs(apart) > max(_SHARE * usual, _LEAST, _SPREADS * spread)


def unusual_pace(apart: float, usual: float, spread: float) -> bool:
    """Return whether a rate that is *apart* from the *usual* one counts, where ranks usually differ by *spread*."""
    return abs(apart) > max(_SHARE * usual, _SPREADS * spread)


_GAP = 0.05
"""A share of all stretches. A gap in a difference is ignored up to this length, and so is a difference that is shorter.
"""
_STEADY = 1.25
_LATER_S = 60.0

K = TypeVar("K", bound=Hashable)


class Differs(msgspec.Struct, frozen=True):
    """The base of all kinds of difference; ``rank`` is the place in the list of ranks."""

    rank: int


class Held(Differs, frozen=True):
    """The rank held ``size`` bytes more of ``measure`` than usual, or if ``less``, fewer.

    With ``up_to``, the difference changes, and ``size`` is its highest value. It lasted from ``begin`` to ``end``, in
    steps or seconds; ``None`` means the start of the run, or its end.
    """

    measure: Measure
    size: int
    less: bool
    up_to: bool
    begin: float | None
    end: float | None


class Peak(Differs, frozen=True):
    """A peak of ``measure`` that is ``size`` bytes above the usual one, or if ``less``, below it.

    This kind is for a rank that cannot be compared with the others over steps or seconds.
    """

    measure: Measure
    size: int
    less: bool


class Pace(Differs, frozen=True):
    """The rank makes ``rate`` steps a second, and ``usual`` is the usual rate.

    ``share`` is by which share it is slower, or if negative, faster.
    """

    share: float
    rate: float
    usual: float


class Ended(Differs, frozen=True):
    """The rank did not end as most did: after ``steps`` where others made ``usual``, or after ``after_s`` seconds.

    ``ending`` is ``None`` if the recording breaks off, or the run goes on.
    """

    ending: Ending | None
    steps: int | None
    usual: int | None
    after_s: float


class RanOut(Differs, frozen=True):
    """The rank had ``count`` out-of-memory errors, more than most ranks."""

    count: int


class OtherTensorFlow(Differs, frozen=True):
    """The rank has another version of TensorFlow than most.

    ``only`` is the place of the rank that has the ``usual`` version, if only one has it.
    """

    version: str
    usual: str
    only: int | None


class OtherSettings(Differs, frozen=True):
    """The rank has other settings of TensorFlow's memory than most; ``only`` as in :class:`OtherTensorFlow`."""

    settings: EffectiveSettings
    usual: EffectiveSettings
    only: int | None


class NotRead(Differs, frozen=True):
    """TensorFlow's memory was read in other ranks, but not in this one; ``seen`` if TensorFlow itself was seen here."""

    seen: bool


class NoSteps(Differs, frozen=True):
    """The rank counts no steps, or those of another function, so it cannot be compared with the others over steps."""


class Later(Differs, frozen=True):
    """The rank started ``seconds`` later than usual, or if negative, earlier. Or the clock of its host differs."""

    seconds: float


def differences(laid: Laid) -> list[Differs]:
    """Return how each rank differs; the differences that matter most come first."""
    if len(laid.ranks) < 2:
        return []
    held = sorted(_held(laid), key=lambda one: (one.less, -one.size))
    return [
        *_out_of_memory(laid.ranks),
        *_ended(laid.ranks),
        *held,
        *_peaks(laid),
        *sorted(_paces(laid.ranks), key=lambda one: -one.share),
        *_not_read(laid),
        *_versions(laid.ranks),
        *_settings(laid.ranks),
        *_later(laid.ranks),
    ]


def missing(ranks: Sequence[Rank]) -> list[int]:
    """Return the numbers of the job's ranks that are not among *ranks*; empty if the size of the job is not known."""
    wanted = {rank.placement.ranks for rank in ranks if rank.placement and rank.placement.ranks}
    there = {rank.number for rank in ranks}
    return [number for number in range(max(wanted)) if number not in there] if len(wanted) == 1 else []


def _held(laid: Laid) -> Iterator[Held]:
    for number in range(len(laid.ranks)):
        found = [one for measure in Measure if (one := _of_measure(laid, measure, number))]
        # The memory in use shows when and why. What is held beyond it follows from it, unless that is much more.
        yield from (one for one in found if one is found[0] or one.size > 2 * found[0].size)


def _of_measure(laid: Laid, measure: Measure, number: int) -> Held | None:
    sizes = laid.of(measure)
    apart: list[tuple[int, int]] = []  # stretch and difference, for the stretches of which the rank has a figure
    beyond: list[int] = []
    for stretch, mine in enumerate(sizes[number]):
        others = [size for rank, row in enumerate(sizes) if rank != number and (size := row[stretch]) is not None]
        if mine is None or not others:
            continue
        usual = median([*others, mine]) if len(others) > 1 else others[0]
        spread = median(abs(size - usual) for size in others) if len(others) > 2 else 0
        apart.append((stretch, int(mine - usual)))
        if unusual(mine - usual, usual, spread):
            beyond.append(len(apart) - 1)
    found = _longest(beyond, [difference for _, difference in apart])
    if found is None or (len(laid.ranks) == 2 and apart[found[0]][1] < 0):
        return None  # of two ranks, only the one that holds more is reported
    first, last = found
    within = sorted(abs(difference) for _, difference in apart[first : last + 1])
    usual_size, highest = within[len(within) // 2], within[-1]
    up_to = highest > _STEADY * usual_size
    gap = _GAP * len(apart)
    return Held(
        number,
        measure,
        highest if up_to else usual_size,
        apart[first][1] < 0,
        up_to,
        None if first <= gap else laid.marks[apart[first][0]],
        None if last >= len(apart) - 1 - gap else laid.marks[apart[last][0] + 1],
    )


def _longest(beyond: Sequence[int], differences: Sequence[int]) -> tuple[int, int] | None:
    """Return the longest part in which nearly every stretch is *beyond* what is usual, on the same side.

    The part is given by its first and last place in *differences*; ``None`` if there is no part long enough.
    """
    gap = max(1.0, _GAP * len(differences))
    parts: list[tuple[int, int]] = []
    for at in beyond:
        side = differences[at] < 0
        if parts and at - parts[-1][1] <= gap and (differences[parts[-1][1]] < 0) == side:
            parts[-1] = parts[-1][0], at
        else:
            parts.append((at, at))
    longest = max(parts, key=lambda part: part[1] - part[0], default=None)
    return longest if longest and longest[1] - longest[0] + 1 >= max(2.0, gap) else None


def _peaks(laid: Laid) -> Iterator[Peak]:
    for number in sorted(laid.apart):
        for measure in Measure:
            peaks = [_peak(rank, measure) for rank in laid.ranks]
            mine, others = peaks[number], [peak for rank, peak in enumerate(peaks) if rank != number and peak]
            if mine is None or not others:
                continue
            usual = median([*others, mine]) if len(others) > 1 else others[0]
            spread = median(abs(peak - usual) for peak in others) if len(others) > 2 else 0
            more = int(mine - usual)
            if unusual(more, usual, spread) and (len(laid.ranks) > 2 or more > 0):
                yield Peak(number, measure, abs(more), more < 0)
                break


def _peak(rank: Rank, measure: Measure) -> int | None:
    figures = rank.figures
    return (figures.peak_in_use, figures.peak_pool, figures.peak_process_total)[measure.value]


def _paces(ranks: Sequence[Rank]) -> Iterator[Pace]:
    rates = {
        number: rank.figures.steps_per_s
        for number, rank in enumerate(ranks)
        if rank.figures.steps_per_s and (rank.figures.steps or 0) >= ENOUGH_STEPS and rank.figures.duration_s > ENOUGH_S
    }
    for number, rate in rates.items():
        others = [other for rank, other in rates.items() if rank != number]
        if not others:
            continue
        usual = median([*others, rate]) if len(others) > 1 else others[0]
        spread = median(abs(other - usual) for other in others) if len(others) > 2 else 0.0
        if unusual_pace(rate - usual, usual, spread) and (len(rates) > 2 or rate < usual):
            yield Pace(number, 1 - rate / usual, rate, usual)


def _ended(ranks: Sequence[Rank]) -> Iterator[Ended]:
    endings = Counter(rank.figures.ending for rank in ranks)
    good = [ending for ending in endings if ending is not None and ending.good]
    usual = good[0] if good else endings.most_common(1)[0][0]
    made = [rank.figures.steps for rank in ranks if rank.figures.steps is not None]
    steps = int(median(made)) if made else None
    for number, rank in enumerate(ranks):
        figures = rank.figures
        fewer = figures.steps is not None and steps is not None and figures.steps < (1 - _SHARE) * steps
        if figures.ending != usual or (fewer and len(ranks) > 2):
            yield Ended(number, figures.ending, figures.steps, steps, figures.duration_s)


def _out_of_memory(ranks: Sequence[Rank]) -> Iterator[RanOut]:
    counts = [rank.figures.out_of_memory for rank in ranks]
    for number, count in enumerate(counts):
        if count and median(counts) < count:
            yield RanOut(number, count)


def _not_read(laid: Laid) -> Iterator[Differs]:
    # A recording that stops early contains nothing of what came later. The stop itself is reported already.
    stopped = {one.rank for one in _ended(laid.ranks) if one.ending is None}
    for number, rank in enumerate(laid.ranks):
        if rank.figures.peak_in_use is None:
            if number not in stopped and any(other.figures.peak_in_use is not None for other in laid.ranks):
                yield NotRead(number, rank.tensorflow is not None)
        elif number in laid.apart and laid.along is Along.STEPS:
            yield NoSteps(number)


def _versions(ranks: Sequence[Rank]) -> Iterator[OtherTensorFlow]:
    for number, version, usual, only in _unusual([rank.tensorflow for rank in ranks]):
        yield OtherTensorFlow(number, version, usual, only)


def _settings(ranks: Sequence[Rank]) -> Iterator[OtherSettings]:
    settled = [_effect(rank.figures.settings) if rank.figures.settings.settled else None for rank in ranks]
    hashed = {repr(settings): settings for settings in settled if settings}
    for number, mine, usual, only in _unusual([repr(settings) if settings else None for settings in settled]):
        yield OtherSettings(number, hashed[mine], hashed[usual], only)


def _effect(settings: EffectiveSettings) -> EffectiveSettings:
    """Return what TensorFlow does, whether the user or the script requested it.

    The choice of GPUs is left out, since ranks on one host have a GPU each.
    """
    return replace(settings, chosen=msgspec.structs.replace(settings.chosen_beside, gpus=None))


def _unusual(values: Sequence[K | None]) -> Iterator[tuple[int, K, K, int | None]]:
    """Yield place and value of each that differs from the most common value, that value, and its place if it is single.

    Of several values that are equally common, the first one counts as the most common.
    """
    known = [value for value in values if value is not None]
    if not known:
        return
    usual, count = Counter(known).most_common(1)[0]
    only = values.index(usual) if count == 1 else None
    for number, value in enumerate(values):
        if value is not None and value != usual:
            yield number, value, usual, only


def _later(ranks: Sequence[Rank]) -> Iterator[Later]:
    usual = median(rank.started for rank in ranks) if len(ranks) > 2 else min(rank.started for rank in ranks)
    for number, rank in enumerate(ranks):
        if abs(rank.started - usual) > _LATER_S:
            yield Later(number, rank.started - usual)
