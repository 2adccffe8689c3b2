"""How a rank of a job differs from the others: each kind of difference, with its condition and its sentence. Pure.

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
from tfmemtop.findings.rules.ending import ending
from tfmemtop.reports.settings import SCRIPTS_OWN, in_effect
from tfmemtop.safe import safe
from tfmemtop.state.comparable import ENOUGH_S, ENOUGH_STEPS, Measure
from tfmemtop.state.figures import EffectiveSettings
from tfmemtop.state.ranks import SHARE, Along, Laid, Rank, usual_beside
from tfmemtop.units import counted, format_bytes, format_count, format_rate, spoken

_GAP = 0.05
"""A share of all stretches. A gap in a difference is ignored up to this length, and so is a difference that is shorter.
"""
_STEADY = 1.25
_LATER_S = 60.0

K = TypeVar("K", bound=Hashable)


def rank_name(rank: Rank) -> str:
    """Return the name of a rank: ``rank 3``, or the recording's name if the number is not known."""
    return rank.name if rank.number is None else f"rank {rank.number}"


def _compared_with(laid: Laid, rank: int) -> str:
    """Return the name of what a rank is compared with: the median, or the other of two ranks."""
    return "the median" if len(laid.ranks) > 2 else safe(rank_name(laid.ranks[1 - rank]))


def _others(laid: Laid, only: int | None) -> str:
    """Return the name of the ranks that have the usual value."""
    return "others" if only is None else safe(rank_name(laid.ranks[only]))


class Differs(msgspec.Struct, frozen=True):
    """The base of all kinds of difference; ``rank`` is the place in the list of ranks."""

    rank: int

    def said(self, laid: Laid, many: bool) -> str:
        """Return the sentence after the name of the rank, or if *many*, of the ranks that differ in this way."""
        raise NotImplementedError


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

    def said(self, laid: Laid, many: bool) -> str:
        size = f"{'up to ' if self.up_to else ''}{format_bytes(self.size)} {'less' if self.less else 'more'}"
        verb = "have" if many else "has"
        what = {
            Measure.IN_USE: f" {verb} {size} in use",
            Measure.POOL: f" {verb} {size} in the pool",
            Measure.PROCESS: f" hold{'' if many else 's'} {size}",
        }[self.measure]
        return f"{what} than {_compared_with(laid, self.rank)}{self._when(laid)}"

    def _when(self, laid: Laid) -> str:
        begin, end = (None if mark is None else _mark(mark, laid) for mark in (self.begin, self.end))
        if begin is None:
            return ", all the time" if end is None else f" until {end}"
        return f" from {begin} on" if end is None else f" from {begin} to {end}"


def _mark(mark: float, laid: Laid) -> str:
    if laid.along is Along.SECONDS:
        return f"~{spoken(mark)} after memory was first held"
    return f"{laid.unit.rstrip('s')} ~{format_count(round(mark))}"


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
        usual = usual_beside(mine, others)
        apart.append((stretch, int(mine - usual.value)))
        if usual.excludes(mine):
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


class Peak(Differs, frozen=True):
    """A peak of ``measure`` that is ``size`` bytes above the usual one, or if ``less``, below it.

    This kind is for a rank that cannot be compared with the others over steps or seconds.
    """

    measure: Measure
    size: int
    less: bool

    def said(self, laid: Laid, many: bool) -> str:
        usual = ("" if len(laid.ranks) > 2 else "that of ") + _compared_with(laid, self.rank)
        size = f"{format_bytes(self.size)} {'below' if self.less else 'above'} {usual}"
        return f" {'have' if many else 'has'} a peak ({self.measure.words}) {size}"


def _peaks(laid: Laid) -> Iterator[Peak]:
    for number in sorted(laid.apart):
        for measure in Measure:
            peaks = [measure.peak(rank.figures) for rank in laid.ranks]
            mine, others = peaks[number], [peak for rank, peak in enumerate(peaks) if rank != number and peak]
            if mine is None or not others:
                continue
            usual = usual_beside(mine, others)
            more = int(mine - usual.value)
            if usual.excludes(mine) and (len(laid.ranks) > 2 or more > 0):
                yield Peak(number, measure, abs(more), more < 0)
                break


class Pace(Differs, frozen=True):
    """The rank makes ``rate`` steps a second, and ``usual`` is the usual rate.

    ``share`` is by which share it is slower, or if negative, faster.
    """

    share: float
    rate: float
    usual: float

    def said(self, laid: Laid, many: bool) -> str:
        unit = laid.unit if laid.along is Along.STEPS else "steps"
        how = f"{abs(self.share):.0%} {'slower' if self.share > 0 else 'faster'}"
        usual = f"{_compared_with(laid, self.rank)} is {format_rate(self.usual)}"
        return f" {'are' if many else 'is'} {how}: {format_rate(self.rate)} {unit} a second where {usual}"


def _paces(ranks: Sequence[Rank]) -> Iterator[Pace]:
    rates = {
        number: rank.figures.steps_per_s
        for number, rank in enumerate(ranks)
        if rank.figures.steps_per_s and (rank.figures.steps or 0) >= ENOUGH_STEPS and rank.figures.duration_s > ENOUGH_S
    }
    for number, rate in rates.items() if len(rates) > 1 else ():
        usual = usual_beside(rate, [other for rank, other in rates.items() if rank != number])
        if usual.excludes(rate, least=0) and (len(rates) > 2 or rate < usual.value):
            yield Pace(number, 1 - rate / usual.value, rate, usual.value)


class Ended(Differs, frozen=True):
    """The rank did not end as most did: after ``steps`` where others made ``usual``, or after ``after_s`` seconds.

    ``ending`` is ``None`` if the recording breaks off, or the run goes on.
    """

    ending: Ending | None
    steps: int | None
    usual: int | None
    after_s: float

    def said(self, laid: Laid, many: bool) -> str:
        if self.ending is None and self.steps is None and self.after_s < 1:
            return ": the recording stops at its start"
        how = f" {ending(self.ending)}" if self.ending else ": the recording stops"
        if self.steps is None:
            return f"{how} after {spoken(self.after_s)}"
        of = f" of {format_count(self.usual)}" if self.usual and self.usual > self.steps else ""
        return f"{how} after {format_count(self.steps)}{of} steps"


def _ended(ranks: Sequence[Rank]) -> Iterator[Ended]:
    endings = Counter(rank.figures.ending for rank in ranks)
    good = [ending for ending in endings if ending is not None and ending.good]
    usual = good[0] if good else endings.most_common(1)[0][0]
    made = [rank.figures.steps for rank in ranks if rank.figures.steps is not None]
    steps = int(median(made)) if made else None
    for number, rank in enumerate(ranks):
        figures = rank.figures
        fewer = figures.steps is not None and steps is not None and figures.steps < (1 - SHARE) * steps
        if figures.ending != usual or (fewer and len(ranks) > 2):
            yield Ended(number, figures.ending, figures.steps, steps, figures.duration_s)


class RanOut(Differs, frozen=True):
    """The rank had ``count`` out-of-memory errors, more than most ranks."""

    count: int

    def said(self, laid: Laid, many: bool) -> str:
        return f" ran out of memory ({counted(self.count, 'error')})"


def _out_of_memory(ranks: Sequence[Rank]) -> Iterator[RanOut]:
    counts = [rank.figures.out_of_memory for rank in ranks]
    for number, count in enumerate(counts):
        if count and median(counts) < count:
            yield RanOut(number, count)


class NotRead(Differs, frozen=True):
    """TensorFlow's memory was read in other ranks, but not in this one; ``seen`` if TensorFlow itself was seen here."""

    seen: bool

    def said(self, laid: Laid, many: bool) -> str:
        return ": TensorFlow's memory was not read there" if self.seen else ": no TensorFlow was seen there"


class NoSteps(Differs, frozen=True):
    """The rank counts no steps, or those of another function, so it cannot be compared with the others over steps."""

    def said(self, laid: Laid, many: bool) -> str:
        return f" {'do' if many else 'does'} not count the steps of the others, so only peaks can be compared"


def _not_read(laid: Laid) -> Iterator[Differs]:
    # A recording that stops early contains nothing of what came later. The stop itself is reported already.
    stopped = {one.rank for one in _ended(laid.ranks) if one.ending is None}
    for number, rank in enumerate(laid.ranks):
        if rank.figures.peak_in_use is None:
            if number not in stopped and any(other.figures.peak_in_use is not None for other in laid.ranks):
                yield NotRead(number, rank.tensorflow is not None)
        elif number in laid.apart and laid.along is Along.STEPS:
            yield NoSteps(number)


class OtherTensorFlow(Differs, frozen=True):
    """The rank has another version of TensorFlow than most.

    ``only`` is the place of the rank that has the ``usual`` version, if only one has it.
    """

    version: str
    usual: str
    only: int | None

    def said(self, laid: Laid, many: bool) -> str:
        has = "have" if many else "has"
        return f" {has} TensorFlow {safe(self.version)}, {_others(laid, self.only)} {safe(self.usual)}"


class OtherSettings(Differs, frozen=True):
    """The rank has other settings of TensorFlow's memory than most; ``only`` as in :class:`OtherTensorFlow`."""

    settings: EffectiveSettings
    usual: EffectiveSettings
    only: int | None

    def said(self, laid: Laid, many: bool) -> str:
        mine, usual = (", ".join(in_effect(one)) or SCRIPTS_OWN for one in (self.settings, self.usual))
        return f" {'have' if many else 'has'} other settings: {mine}; {_others(laid, self.only)} {usual}"


def _settings(ranks: Sequence[Rank]) -> Iterator[OtherSettings]:
    settled = [_effect(rank.figures.settings) if rank.figures.settings.settled else None for rank in ranks]
    hashed = {repr(settings): settings for settings in settled if settings}
    for number, mine, usual, only in _unusual([repr(settings) if settings else None for settings in settled]):
        yield OtherSettings(number, hashed[mine], hashed[usual], only)


def _effect(settings: EffectiveSettings) -> EffectiveSettings:
    """Return what TensorFlow does, whether the user or the script requested it.

    The choice of GPUs is left out, since ranks on one host have a GPU each.
    """
    return replace(settings, chosen=replace(settings.chosen_beside, gpus=None))


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


class Later(Differs, frozen=True):
    """The rank started ``seconds`` later than usual, or if negative, earlier. Or the clock of its host differs."""

    seconds: float

    def said(self, laid: Laid, many: bool) -> str:
        when = f"{spoken(abs(self.seconds))} {'later' if self.seconds > 0 else 'earlier'}"
        return f" started {when} than {_compared_with(laid, self.rank)}, or the clocks of the hosts are apart"


def _later(ranks: Sequence[Rank]) -> Iterator[Later]:
    usual = median(rank.started for rank in ranks) if len(ranks) > 2 else min(rank.started for rank in ranks)
    for number, rank in enumerate(ranks):
        if abs(rank.started - usual) > _LATER_S:
            yield Later(number, rank.started - usual)


def differences(laid: Laid) -> list[Differs]:
    """Return how each rank differs; the differences that matter most come first."""
    if len(laid.ranks) < 2:
        return []
    versions = _unusual([rank.tensorflow for rank in laid.ranks])
    return [
        *_out_of_memory(laid.ranks),
        *_ended(laid.ranks),
        *sorted(_held(laid), key=lambda one: (one.less, -one.size)),
        *_peaks(laid),
        *sorted(_paces(laid.ranks), key=lambda one: -one.share),
        *_not_read(laid),
        *(OtherTensorFlow(*found) for found in versions),
        *_settings(laid.ranks),
        *_later(laid.ranks),
    ]
