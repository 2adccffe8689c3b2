"""Five questions about TensorFlow's GPU memory, answered for one run: each in a line, and in paragraphs. Pure."""

from collections.abc import Callable, Iterator

import msgspec

from tfmemtop import events
from tfmemtop.events.base import DescribedEnum
from tfmemtop.events.machine import is_gpu, is_pinned
from tfmemtop.failure import describe
from tfmemtop.findings.cause import Key
from tfmemtop.findings.judgement import peaks_of_processes
from tfmemtop.findings.names import alike_gpus, call_text, callsite, devices_made_at, gpus, line_of, line_with_code
from tfmemtop.findings.proposed_limit import (
    code,
    found_no_room,
    kernel_installed,
    needed_by,
    sentences,
    started,
    suggested_limit,
)
from tfmemtop.findings.review import CardUse, RunReview
from tfmemtop.findings.rules.leaks import leaks
from tfmemtop.findings.rules.pool import WHOLE_CARD
from tfmemtop.findings.run_devices import PoolKind, hooked_of_run, pool_kind, run_devices, used_cards, variable
from tfmemtop.reports.account import others_say, why_they_differ
from tfmemtop.state.account import Account
from tfmemtop.state.lookup import without_tensorflow
from tfmemtop.state.model import RunState
from tfmemtop.state.shortages import anatomies
from tfmemtop.tensorflow_text import GROWTH_VARIABLE
from tfmemtop.units import counted, format_bytes, spoken


class CommonQuestion(DescribedEnum):
    """The five questions that people ask about TensorFlow's GPU memory, each in short too."""

    ALL_TAKEN = (
        "Why does TensorFlow still allocate all GPU memory despite setting allow_growth to true?",
        "All memory taken?",
    )
    FULL_NOT_USED = "Why is my TensorFlow GPU memory full but not fully utilized?", "Full, but idle?"
    EFFICIENTLY = "How can TensorFlow efficiently allocate GPU memory?", "How to set it?"
    GROWTH = "How does set_memory_growth affect TensorFlow 2's memory usage?", "What growth changes?"
    REPORTS_LESS = "Why does TensorFlow report less GPU memory than expected?", "Less than nvidia-smi?"


_WITHOUT_GPU = {CommonQuestion.ALL_TAKEN, CommonQuestion.EFFICIENTLY}

_LISTED = 4
_NO_LIMIT = "cuda_malloc_async, CUDA's own pool, takes what is needed."
_SHARE = "a share that per_process_gpu_memory_fraction in the session's ConfigProto sets"

_NEARLY_ALL = 0.9
"""Share of what is taken of a card. If the run has more than this, other processes do not matter."""

_IDLE_PERCENT = 50.0
"""A full card that is busy for less than this gives reason to ask why."""


class Answer(msgspec.Struct, frozen=True):
    """The answer to a question: in a ``line``, and further ``paragraphs``.

    ``command`` are the words of a command to try, ``code`` lines for the script.
    """

    question: CommonQuestion
    line: str
    paragraphs: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    code: tuple[str, ...] = ()


def answers(seen: RunReview) -> list[Answer]:
    """Return one answer for each question, in the order above. Figures that are not known are named as such.

    Of a run without a GPU, only questions that concern it are answered. There is no answer for a run that uses other
    frameworks than TensorFlow.
    """
    run = seen.state.run
    if run is None or without_tensorflow(seen.state):
        return []
    asked = set(CommonQuestion) if pool_kind(run).on_gpu else _WITHOUT_GPU | arising(seen)
    return [_answer(question, seen, run) for question in CommonQuestion if question in asked]


def _answer(question: CommonQuestion, seen: RunReview, run: RunState) -> Answer:
    """Return the answer; if it raises, one that reports the error, so that other answers remain."""
    try:
        line, *paragraphs = _ANSWERS[question](seen, run)
    except Exception as error:
        return Answer(question, f"This cannot be answered: {describe(error)}.")
    limit = suggested_limit(seen.state, run) if question is CommonQuestion.EFFICIENTLY else None
    if limit is None or limit.is_guess or _has_share(seen, run):
        return Answer(question, line, tuple(paragraphs))
    command = started(limit, run.argv) if run.kernel is None else kernel_installed(limit)
    return Answer(question, line, tuple(paragraphs), command, code(limit))


def arising(seen: RunReview) -> set[CommonQuestion]:
    """Return the questions that the run gives reason to ask."""
    run = seen.state.run
    if run is None:
        return set()
    found = set()
    if _most_of_card(seen, run) or _card_full(seen) or any(held.finding.key is Key.SETTING for held in seen.held):
        found.add(CommonQuestion.ALL_TAKEN)
    if any(_full_and_idle(seen, index, card) for index, card in seen.cards.items()):
        found.add(CommonQuestion.FULL_NOT_USED)
    if run.peak_in_use is not None:
        found.add(CommonQuestion.EFFICIENTLY)
    if pool_kind(run) in (PoolKind.GROWING, PoolKind.RESERVED):
        found.add(CommonQuestion.GROWTH)
    if seen.account is not None and seen.account.total is not None:
        found.add(CommonQuestion.REPORTS_LESS)
    return found


# Was all memory taken?


def _card(seen: RunReview) -> int | None:
    """Return the size of the largest GPU that the run uses, in bytes."""
    cards = used_cards(seen.state) or seen.state.devices.keys()
    totals = [total for index in cards if (total := seen.state.devices[index].info.total) is not None]
    return max(totals, default=None)


def _most_of_card(seen: RunReview, run: RunState) -> bool:
    taken, card = run.peak_process_total if run.peak_pool is None else run.peak_pool, _card(seen)
    return taken is not None and card is not None and taken >= card * WHOLE_CARD


def _has_share(seen: RunReview, run: RunState) -> bool:
    """Return whether a session took a part only of what was free: no call set its limit, and the card was not full."""
    made = run_devices(seen.state)
    by_session = any(one.effective and one.effective.limit for one in made) and not any(one.asked_limit for one in made)
    return by_session and bool(seen.cards) and not (_card_full(seen) or _most_of_card(seen, run))


def _taken(seen: RunReview, run: RunState) -> Iterator[str]:
    yield _how_taken(seen, run)
    if run.settings.growth is not None:
        yield f"tfmemtop was told to turn growth {run.settings.growth} for this run, which overrides the script."
    hooked = [hooked for _, hooked in hooked_of_run(seen.state)]
    calls = [each for one in hooked for each in one.requested if each.call is events.Call.SET_MEMORY_GROWTH]
    yield _calls(calls, by_session=pool_kind(run) is PoolKind.GROWING and _by_default(seen, run))
    if made := list(dict.fromkeys(line_with_code(site) for one in hooked if (site := devices_made_at(one)))):
        yield f"TensorFlow initialised its devices (fixing growth and limits) at {'; '.join(made[:_LISTED])}."


def _how_taken(seen: RunReview, run: RunState) -> str:
    kind, what, size = pool_kind(run), "the pool", run.peak_pool
    if size is None:
        what, size = "the whole process", run.peak_process_total
    came = f"{format_bytes(size)} of {format_bytes(_card(seen))}"
    if not kind.on_gpu:
        return "Not by this run: TensorFlow used no GPU in it, as far as was seen."
    answer = "Yes" if _most_of_card(seen, run) else "Yes, but not by TensorFlow alone" if _card_full(seen) else "No"
    limits = " and ".join(format_bytes(one.asked_limit) for one in run_devices(seen.state) if one.asked_limit)
    limited = f", {_SHARE}" if _has_share(seen, run) else limits and f" under a limit of {limits}"
    if kind is PoolKind.RESERVED:
        return f"{answer}: growth was off, so TensorFlow took {came} at once{limited}."
    if kind is PoolKind.GROWING:
        return f"{answer}: growth was on, and {what} came to {came}{limited}."
    return "Not known." if kind is PoolKind.UNKNOWN else f"{answer}: {_NO_LIMIT}"


def _by_default(seen: RunReview, run: RunState) -> bool:
    """Return whether it is known that neither tfmemtop nor the environment sets growth."""
    pids = [pid for pid, hooked in hooked_of_run(seen.state) if hooked.initialised or pid in seen.state.environments]
    words = {variable(seen.state, pid, GROWTH_VARIABLE) for pid in pids}
    return run.settings.growth is None and words == {None}


def _calls(calls: list[events.Requested], *, by_session: bool) -> str:
    if not calls:
        by = "; the ConfigProto of a session turned growth on" if by_session else ""
        return f"The script did not call set_memory_growth{by}."
    asked = "; ".join(
        f"{line_of(callsite(call))} called {call_text(call)}" + (f", which raised {call.error}" if call.error else "")
        for call in calls[:_LISTED]
    )
    return f"The script asked for growth: {asked}{' …' * (len(calls) > _LISTED)}."


# Is it full, but idle?


def _full(seen: RunReview, index: int, card: CardUse) -> bool:
    whole = seen.state.devices[index].info.total
    return whole is not None and card.most_used >= whole * WHOLE_CARD


def _card_full(seen: RunReview) -> bool:
    return any(_full(seen, index, card) for index, card in seen.cards.items())


def _full_and_idle(seen: RunReview, index: int, card: CardUse) -> bool:
    return _full(seen, index, card) and card.busy is not None and card.busy < _IDLE_PERCENT


def _idle(seen: RunReview, run: RunState) -> Iterator[str]:
    if not seen.cards:
        yield "Not known: nothing was read of the GPU while TensorFlow had it."
        return
    idle = {index: card for index, card in seen.cards.items() if _full_and_idle(seen, index, card)}
    index, card = max((idle or seen.cards).items(), key=lambda of: of[1].most_used)
    known = card.busy is not None or not _full(seen, index, card)
    answer = "Yes" if idle else "No" if known else "Not known"
    whole = format_bytes(seen.state.devices[index].info.total)
    together = "together " if len(peaks_of_processes(seen.state)) > 1 else ""
    peak = run.peak_in_use
    in_use = "how much in use is not known" if peak is None else f"{together}{format_bytes(peak)} in use"
    on = f" on GPU {index}" if len(seen.cards) > 1 else ""
    in_use += " on the GPU with most" if on and peak is not None else ""
    busy = "" if card.busy is None else f", GPU ~{round(card.busy, -1):.0f} % busy"
    # What was in use was taken, though no reading of the card may be of that moment.
    taken = card.most_used if on or together else max(card.most_used, peak or 0)
    yield f"{answer}: up to {format_bytes(taken)} of {whole} taken{on}, {in_use}{busy}."
    told = alike_gpus((index, _taken_and_busy(seen, run, index, card)) for index, card in seen.cards.items())
    for words, numbers in told:
        counts = " Reserved and cached memory counts as taken, even if unused." if words == told[-1][0] else ""
        yield f"{gpus(numbers)}: {words}{counts}"


def _taken_and_busy(seen: RunReview, run: RunState, index: int, card: CardUse) -> str:
    of = f"{format_bytes(card.most_used)} of {format_bytes(seen.state.devices[index].info.total)}"
    taken, own = f"at most {of} were taken while TensorFlow had it", run.totals.get(index)
    if own is not None and own < card.most_used * _NEARLY_ALL:
        taken += f" (by this run at most {format_bytes(own)})"
    if card.busy is None:
        return f"{taken}, and how busy it was is not known."
    return f"{taken}, and GPU utilisation averaged {card.busy:.0f}%."


# How should it be set?


def _limit(seen: RunReview, run: RunState) -> Iterator[str]:
    if _has_share(seen, run):
        yield "By the session's ConfigProto: allow_growth = True, or a smaller per_process_gpu_memory_fraction."
        return
    limit = suggested_limit(seen.state, run)
    several = len(peaks_of_processes(seen.state)) > 1
    first, *more = sentences(limit) if limit is not None else [_without_limit(seen, run)]
    unused = [name for name, peak in run.peaks.items() if is_gpu(name) and not peak]
    more_of = " That is for each process, not for all together." if limit and several else ""
    yield first + (f" {' and '.join(unused)} had nothing in use." if limit and unused else more_of)
    if run.peak_in_use is None:
        return
    peak = format_bytes(run.peak_in_use)
    if limit is not None and limit.divided:
        peak = " and ".join(f"{format_bytes(run.peaks[one.device])} on {one.device}" for one in limit.each)
    who = "The run's processes together" if several else "The run"
    yield f"{who} had {peak} in use at the peak{' so far' if run.going else ''}."
    failed = [(size, one) for one in anatomies(seen.state) if one.asked and (size := needed_by(one)) is not None]
    if run.out_of_memory and failed:
        size, most = max(failed, key=lambda each: each[0])
        hooked = seen.state.processes[most.pid].hooked
        trend = hooked.trends.get(most.device or "") if hooked else None
        pool_peak = trend.peak if trend else run.peak_in_use
        pool = f" of process {most.pid}" * several + f" on {most.device}" * (len(run.peaks) > 1)
        no_more = "" if size > pool_peak else ", no more than its peak"
        yield f"The request that failed would have raised use{pool} to {format_bytes(size)}{no_more}."
    yield from more


def _without_limit(seen: RunReview, run: RunState) -> str:
    """Return why no limit is suggested."""
    if run.peak_in_use is None:
        return "Nothing was read of TensorFlow's memory."
    if run.out_of_memory or run.crashed_on:
        return "What the run needs is not known: a request failed."
    if leaks(seen.state):
        return "No limit can be named: memory in use kept rising."
    if found_no_room(seen.state):
        return "What the run needs is not known: an allocation waited for room."
    if pool_kind(run) is PoolKind.CUDA:
        return f"Without a limit: {_NO_LIMIT}"
    if run.ending is not None and not run.ending.known:
        return "Whether the run was cut short is not known, so what it needs is not known either."
    return "The run was cut short, so what it needs is not known."


# What does growth change?


def _growth(seen: RunReview, run: RunState) -> Iterator[str]:
    kind, steps = pool_kind(run), _growths(seen)
    if kind is PoolKind.CUDA:
        yield "Growth changes nothing with cuda_malloc_async, whose pool is CUDA's own."
        return
    if kind is PoolKind.RESERVED:
        yield f"With growth on the pool begins small; at most {format_bytes(run.peak_in_use)} were in use."
    else:
        grew = f"grew {counted(len(steps), 'time')}," if steps else "came"
        pool = f"The pool {grew} to {format_bytes(run.peak_pool)}: what is freed stays in it."
        yield pool if run.peak_pool else "The pool's growth was not seen."
        yield _otherwise(seen, run, kind)
    if steps and kind is not PoolKind.RESERVED:
        shown = ", ".join(
            f"{format_bytes(step.before)} to {format_bytes(step.after)} at {spoken(step.at - run.started)}"
            for step in steps[-_LISTED:]
        )
        yield f"It grew{f', the last {_LISTED} times' if len(steps) > _LISTED else ''}: {shown}."
    yield (
        "Growth changes when memory is taken, not what the model needs: the peak in use is much the same. The pool "
        "keeps what it has taken until the process ends; only after a failed allocation does it give back free regions."
    )


def _otherwise(seen: RunReview, run: RunState, kind: PoolKind) -> str:
    """Return what the pool would have been without growth."""
    limit = sum(device.asked_limit or 0 for device in run_devices(seen.state))
    if kind is PoolKind.GROWING and limit:
        return (
            "A limit was set: without growth TensorFlow would have reserved all of its "
            f"{format_bytes(limit)} at the first allocation."
        )
    if kind is PoolKind.GROWING:
        cards = used_cards(seen.state) or run.before.keys()
        free = max((free for index, (_, free) in run.before.items() if index in cards), default=None)
        own = max((limit for name, limit in run.limits.items() if is_gpu(name)), default=None)
        reserved = "" if own is None else f"{format_bytes(own)}: "
        at_start = "" if free is None else f", {format_bytes(free)}"
        taken_at_start = f"nearly all that was free at the start{at_start}"
        return f"Without growth TensorFlow would have reserved {reserved}{taken_at_start}."
    both = {effective.growth for effective in run.effective.values()} >= {True, False}
    return "Growth was on for some GPUs, and off for others." if both else "Whether growth was on is not known."


def _growths(seen: RunReview) -> list[events.PoolGrowth]:
    """Return the growths of the pool that became largest. Steps of two pools in one row would mean nothing."""
    pools = [
        [growth for growth in pool.growths if growth.after > growth.before]
        for _, hooked in hooked_of_run(seen.state)
        for name, pool in hooked.pools.items()
        if not is_pinned(name)
    ]
    return max(pools, key=lambda growths: max((growth.after for growth in growths), default=0), default=[])


# Why is it less than nvidia-smi says?


def _less(seen: RunReview, run: RunState) -> Iterator[str]:
    account = seen.account
    if account is None or account.total is None:
        yield "No GPU memory of a TensorFlow process was read."
    else:
        last = "When it was last read, nvidia-smi said" if run.going else "At the end nvidia-smi said"
        said = "Now nvidia-smi says" if seen.running else last
        on = f" for GPU {account.gpu}" if len(used_cards(seen.state)) > 1 else ""
        yield f"{said} {format_bytes(account.total)}{on}: {', '.join(_parts(account))}."
    if account is None:
        if run.peak_process_total:
            yield f"The run held up to {format_bytes(run.peak_process_total)} of a GPU."
        return
    if reason := why_they_differ(account):
        yield reason
    yield "; ".join(f"{name} says {words}" for name, words in others_say(account)) + "."


def _parts(account: Account) -> Iterator[str]:
    """Yield the parts of what a process holds on a GPU."""
    yield f"{format_bytes(account.in_use)} in use"
    if account.outside is not None:
        yield f"{format_bytes(account.cached)} cached"
    yield from (f"{format_bytes(size)} {framework.title}" for framework, size in account.by_framework.items())
    if account.outside is not None:
        yield f"{format_bytes((account.context or 0) + account.outside)} CUDA and libraries"
    else:
        yield "the rest cached, CUDA and libraries"


_ANSWERS: dict[CommonQuestion, Callable[[RunReview, RunState], Iterator[str]]] = {
    CommonQuestion.ALL_TAKEN: _taken,
    CommonQuestion.FULL_NOT_USED: _idle,
    CommonQuestion.EFFICIENTLY: _limit,
    CommonQuestion.GROWTH: _growth,
    CommonQuestion.REPORTS_LESS: _less,
}
"""For each question what yields its answer: a line, then the paragraphs."""
