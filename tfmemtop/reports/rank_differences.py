"""How a rank of a job differs from the others: each kind of difference, with its condition and its text. Pure.

A rank is compared with the median of all ranks, or if there are two, with the other one. A difference is not reported
if it is smaller than the usual differences between the ranks.
"""

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from statistics import median
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

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
    """One difference of the rank at the place ``rank``. Its sentence is the rank's name, the ``verb`` and the ``rest``.

    ``figures`` are what the sentence rests on, and ``kind`` is the key of that kind of difference.
    """

    rank: int
    kind: str
    verb: str
    rest: str
    figures: dict[str, Any]

    def said(self, many: bool) -> str:
        """Return the sentence after the name of the rank, or if *many*, of the ranks that differ in this way."""
        return f" {_PLURAL[self.verb] if many else self.verb}{self.rest}" if self.verb else self.rest


_PLURAL = {"has": "have", "holds": "hold", "is": "are", "does": "do"}


def _mark(mark: float, laid: Laid) -> str:
    if laid.along is Along.SECONDS:
        return f"~{spoken(mark)} after memory was first held"
    return f"{laid.unit.rstrip('s')} ~{format_count(round(mark))}"


def _held(laid: Laid) -> Iterator[Differs]:
    """Yield what ranks held more of a measure than usual, or less, for at least a part of the run."""
    for number in range(len(laid.ranks)):
        found = [one for measure in Measure if (one := _of_measure(laid, measure, number))]
        # The memory in use shows when and why. What is held beyond it follows from it, unless that is much more.
        yield from (one for one in found if one is found[0] or one.figures["size"] > 2 * found[0].figures["size"])


def _of_measure(laid: Laid, measure: Measure, number: int) -> Differs | None:
    """Return by how many bytes of *measure* the rank differs, and from when to when, in steps or seconds.

    If the difference changes, it is the highest. ``None`` for a time means the start of the run, or its end.
    """
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
    size, less, gap = highest if up_to else usual_size, apart[first][1] < 0, _GAP * len(apart)
    begin = None if first <= gap else laid.marks[apart[first][0]]
    end = None if last >= len(apart) - 1 - gap else laid.marks[apart[last][0] + 1]
    what = f"{'up to ' if up_to else ''}{format_bytes(size)} {'less' if less else 'more'}{_WHERE[measure]}"
    return Differs(
        number,
        "held",
        "holds" if measure is Measure.PROCESS else "has",
        f" {what} than {_compared_with(laid, number)}{_when(laid, begin, end)}",
        {"measure": measure.name.lower(), "size": size, "less": less, "up_to": up_to, "begin": begin, "end": end},
    )


_WHERE = {Measure.IN_USE: " in use", Measure.POOL: " in the pool", Measure.PROCESS: ""}


def _when(laid: Laid, begin: float | None, end: float | None) -> str:
    if begin is None:
        return ", all the time" if end is None else f" until {_mark(end, laid)}"
    return f" from {_mark(begin, laid)} " + ("on" if end is None else f"to {_mark(end, laid)}")


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


def _peaks(laid: Laid) -> Iterator[Differs]:
    """Yield unusual peaks of ranks that cannot be compared with the others over steps or seconds."""
    for number in sorted(laid.apart):
        for measure in Measure:
            peaks = [measure.peak(rank.figures) for rank in laid.ranks]
            mine, others = peaks[number], [peak for rank, peak in enumerate(peaks) if rank != number and peak]
            if mine is None or not others:
                continue
            usual = usual_beside(mine, others)
            more = int(mine - usual.value)
            if usual.excludes(mine) and (len(laid.ranks) > 2 or more > 0):
                whose = ("" if len(laid.ranks) > 2 else "that of ") + _compared_with(laid, number)
                size = f"{format_bytes(abs(more))} {'below' if more < 0 else 'above'} {whose}"
                figures = {"measure": measure.name.lower(), "size": abs(more), "less": more < 0}
                yield Differs(number, "peak", "has", f" a peak ({measure.words}) {size}", figures)
                break


def _paces(laid: Laid) -> Iterator[Differs]:
    """Yield ranks that make fewer or more steps a second than usual. ``share`` is by which share they are slower."""
    rates = {
        number: rank.figures.steps_per_s
        for number, rank in enumerate(laid.ranks)
        if rank.figures.steps_per_s and (rank.figures.steps or 0) >= ENOUGH_STEPS and rank.figures.duration_s > ENOUGH_S
    }
    unit = laid.unit if laid.along is Along.STEPS else "steps"
    for number, rate in rates.items() if len(rates) > 1 else ():
        usual = usual_beside(rate, [other for rank, other in rates.items() if rank != number])
        if usual.excludes(rate, least=0) and (len(rates) > 2 or rate < usual.value):
            share = 1 - rate / usual.value
            how = f"{abs(share):.0%} {'slower' if share > 0 else 'faster'}: {format_rate(rate)} {unit} a second"
            rest = f" {how} where {_compared_with(laid, number)} is {format_rate(usual.value)}"
            yield Differs(number, "pace", "is", rest, {"share": share, "rate": rate, "usual": usual.value})


def _ended(ranks: Sequence[Rank]) -> Iterator[Differs]:
    """Yield ranks that did not end as most did. Without an ending, the recording breaks off, or the run goes on."""
    endings = Counter(rank.figures.ending for rank in ranks)
    good = [ending for ending in endings if ending is not None and ending.good]
    usual = good[0] if good else endings.most_common(1)[0][0]
    made = [rank.figures.steps for rank in ranks if rank.figures.steps is not None]
    most = int(median(made)) if made else None
    for number, rank in enumerate(ranks):
        how, steps, after_s = rank.figures.ending, rank.figures.steps, rank.figures.duration_s
        fewer = steps is not None and most is not None and steps < (1 - SHARE) * most
        if how != usual or (fewer and len(ranks) > 2):
            rest = f" {ending(how)}" if how else ": the recording stops"
            if steps is not None:
                of = f" of {format_count(most)}" if most and most > steps else ""
                rest += f" after {format_count(steps)}{of} steps"
            else:
                rest += f" after {spoken(after_s)}" if how or after_s >= 1 else " at its start"
            figures = {"ending": how, "steps": steps, "usual": most, "after_s": after_s}
            yield Differs(number, "ended", "", rest, figures)


def _out_of_memory(ranks: Sequence[Rank]) -> Iterator[Differs]:
    counts = [rank.figures.out_of_memory for rank in ranks]
    for number, count in enumerate(counts):
        if count and median(counts) < count:
            yield Differs(number, "ran_out", "", f" ran out of memory ({counted(count, 'error')})", {"count": count})


def _not_read(laid: Laid) -> Iterator[Differs]:
    """Yield ranks of which no memory was read, though it was in others, or no steps that the others count."""
    # A recording that stops early contains nothing of what came later. The stop itself is reported already.
    stopped = {one.rank for one in _ended(laid.ranks) if one.figures["ending"] is None}
    for number, rank in enumerate(laid.ranks):
        if rank.figures.peak_in_use is None:
            if number not in stopped and any(other.figures.peak_in_use is not None for other in laid.ranks):
                seen = rank.tensorflow is not None
                rest = ": TensorFlow's memory was not read there" if seen else ": no TensorFlow was seen there"
                yield Differs(number, "not_read", "", rest, {"seen": seen})
        elif number in laid.apart and laid.along is Along.STEPS:
            rest = " not count the steps of the others, so only peaks can be compared"
            yield Differs(number, "no_steps", "does", rest, {})


def _versions(laid: Laid) -> Iterator[Differs]:
    """Yield ranks with another TensorFlow than most. ``only`` is the rank that has the usual one, if it is single."""
    for number, version, usual, only in _unusual([rank.tensorflow for rank in laid.ranks]):
        rest = f" TensorFlow {safe(version)}, {_others(laid, only)} {safe(usual)}"
        yield Differs(number, "other_tensor_flow", "has", rest, {"version": version, "usual": usual, "only": only})


def _settings(laid: Laid) -> Iterator[Differs]:
    """Yield ranks with other settings of TensorFlow's memory than most; ``only`` as in :func:`_versions`."""
    effects = [rank.figures.settings for rank in laid.ranks]
    told = [tuple(in_effect(_effect(effect))) if effect.settled else None for effect in effects]
    for number, mine, usual, only in _unusual(told):
        words = [", ".join(settings) or SCRIPTS_OWN for settings in (mine, usual)]
        rest = f" other settings: {words[0]}; {_others(laid, only)} {words[1]}"
        figures = {"settings": mine, "usual": usual, "only": only}
        yield Differs(number, "other_settings", "has", rest, figures)


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


def _later(laid: Laid) -> Iterator[Differs]:
    """Yield ranks that started much later than usual, or earlier. Or the clock of their host differs."""
    started = [rank.started for rank in laid.ranks]
    usual = median(started) if len(started) > 2 else min(started)
    for number, at in enumerate(started):
        if abs(at - usual) > _LATER_S:
            when = f"{spoken(abs(at - usual))} {'later' if at > usual else 'earlier'}"
            rest = f" started {when} than {_compared_with(laid, number)}, or the clocks of the hosts are apart"
            yield Differs(number, "later", "", rest, {"seconds": at - usual})


def differences(laid: Laid) -> list[Differs]:
    """Return how each rank differs; the differences that matter most come first."""
    if len(laid.ranks) < 2:
        return []
    return [
        *_out_of_memory(laid.ranks),
        *_ended(laid.ranks),
        *sorted(_held(laid), key=lambda one: (one.figures["less"], -one.figures["size"])),
        *_peaks(laid),
        *sorted(_paces(laid), key=lambda one: -one.figures["share"]),
        *_not_read(laid),
        *_versions(laid),
        *_settings(laid),
        *_later(laid),
    ]
