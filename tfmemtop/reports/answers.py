"""The five questions that people ask about TensorFlow's GPU memory, answered for one run with its figures. Pure."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import ParamSpec

from tfmemtop import events
from tfmemtop.failure import describe
from tfmemtop.findings.callsite import callsite
from tfmemtop.findings.finding import Question
from tfmemtop.findings.judgement import peaks_of_processes
from tfmemtop.findings.limit_texts import code, kernel_installed, sentences, started
from tfmemtop.findings.places import alike_gpus, gpus, line_of, line_with_code
from tfmemtop.findings.questions import (
    AllTaken,
    Efficiently,
    FullNotUsed,
    GrowthEffect,
    ReportsLess,
    TakenAndBusy,
    all_taken,
    efficiently,
    full_not_used,
    growth_effect,
    reports_less,
)
from tfmemtop.findings.requests import call_text
from tfmemtop.findings.room import BESIDE_POOLS
from tfmemtop.findings.run_figures import Peaks, PoolKind
from tfmemtop.findings.run_review import RunReview
from tfmemtop.reports.account import counted_kinds, in_use, others_say, parts, why_they_differ
from tfmemtop.units import counted, format_bytes, sentence, spoken

QUESTIONS = {
    Question.ALL_TAKEN: "Why does TensorFlow still allocate all GPU memory despite setting allow_growth to true?",
    Question.FULL_NOT_USED: "Why is my TensorFlow GPU memory full but not fully utilized?",
    Question.EFFICIENTLY: "How can TensorFlow efficiently allocate GPU memory?",
    Question.GROWTH: "How does set_memory_growth affect TensorFlow 2's memory usage?",
    Question.REPORTS_LESS: "Why does TensorFlow report less GPU memory than expected?",
}

_LISTED = 4
_NOTABLY_CUT_UP = 0.1

_NEARLY_ALL = 0.9
"""Share of what is taken of a card. If the run has more than this, other processes do not matter."""

_ALL = 0.99
"""Share of a limit. TensorFlow takes only what is free, where that is less than the limit, and rounds down."""

P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer: its ``paragraphs``, the words of a ``command`` to try, and lines of ``code`` for the script."""

    question: Question
    paragraphs: tuple[str, ...]
    command: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    of_gpu: bool = True

    @property
    def title(self) -> str:
        """The question. For a run on a machine without a GPU, it is about memory instead of GPU memory."""
        asked = QUESTIONS[self.question]
        return asked if self.of_gpu else asked.replace("GPU memory", "memory")


def answers(seen: RunReview) -> list[Answer]:
    """Return one answer for each question, in the order above. Figures that are not known are named as such."""
    state, run = seen.state, seen.state.run
    if run is None:
        return []
    said = {
        Question.ALL_TAKEN: _section(lambda: _all_taken(all_taken(state, run))),
        Question.FULL_NOT_USED: _section(lambda: _full_not_used(full_not_used(seen, run))),
        Question.EFFICIENTLY: _section(lambda: _efficiently(efficiently(state, run))),
        Question.GROWTH: _section(lambda: _growth(growth_effect(state, run))),
        Question.REPORTS_LESS: _section(lambda: _reports_less(reports_less(seen))),
    }
    facts = efficiently(state, run)
    to_try = {Question.EFFICIENTLY: (_command(facts), _code(facts))}
    of_gpu = bool(state.devices)
    return [
        Answer(question, paragraphs, *to_try.get(question, ((), ())), of_gpu) for question, paragraphs in said.items()
    ]


def in_short(seen: RunReview) -> list[tuple[str, str]]:
    """Return the five questions as short titles, each with its answer for this run in a line."""
    state, run = seen.state, seen.state.run
    if run is None:
        return []
    processes = len(peaks_of_processes(state))
    said = (
        ("All memory taken?", lambda: _taken_in_short(all_taken(state, run))),
        ("Full, but idle?", lambda: _idle_in_short(full_not_used(seen, run), processes)),
        ("How to set it?", lambda: _limit_in_short(efficiently(state, run), processes)),
        ("What growth changes?", lambda: _growth_in_short(growth_effect(state, run))),
        ("Less than nvidia-smi?", lambda: _less_in_short(reports_less(seen))),
    )
    return [(title, " ".join(_section(lambda say=say: [say()]))) for title, say in said]  # type: ignore[misc]


def _taken_in_short(facts: AllTaken) -> str:
    pool, card = format_bytes(facts.peaks.pool), format_bytes(facts.card)
    if not facts.kind.on_gpu:
        return "No: TensorFlow used no GPU, as far as was seen."
    if facts.kind is PoolKind.RESERVED:
        return f"Yes: growth was off, so TensorFlow took {pool} of {card} at once."
    if facts.kind is PoolKind.GROWING:
        return f"{'Yes' if facts.most_of_card else 'No'}: growth was on, and the pool came to {pool} of {card}."
    return "Not known." if facts.kind is PoolKind.UNKNOWN else "No: CUDA's own pool takes what is needed."


def _idle_in_short(facts: FullNotUsed, processes: int) -> str:
    pool, used = facts.peaks.pool, facts.peaks.in_use
    if processes > 1 and not facts.cards:
        return f"Each of {processes} processes has a pool of its own."
    busy = [card.busy for _, card in facts.cards if card.busy is not None]
    how_busy = f"; the GPU was busy ~{round(sum(busy) / len(busy), -1):.0f} % of the time" if busy else ""
    if pool and used is not None:
        return f"{format_bytes(used)} of the pool's {format_bytes(pool)} were in use at the peak{how_busy}."
    return f"How full the pool was is not known{how_busy}."


def _limit_in_short(facts: Efficiently, processes: int) -> str:
    if facts.limit is not None:
        return next(sentences(facts.limit)) + (" It holds for each process." if processes > 1 else "")
    if facts.peak is None:
        return "Nothing was read of TensorFlow's memory."
    if facts.failed:
        return "No limit can be named: a request failed, so what the run needs is not known."
    return "No limit can be named: memory in use kept rising." if facts.leaks else "What the run needs is not known."


def _growth_in_short(facts: GrowthEffect) -> str:
    if facts.kind is PoolKind.RESERVED:
        return f"With growth on the pool would begin small; at most {format_bytes(facts.peaks.in_use)} were in use."
    times = counted(len(facts.steps), "time")
    grew = (
        f"the pool grew {times}, to {format_bytes(facts.peaks.pool)}"
        if facts.steps
        else "the pool's growth was not seen"
    )
    return f"{grew[0].upper()}{grew[1:]}{'.' if facts.kind.on_gpu else '; growth is a setting for GPUs.'}"


def _less_in_short(facts: ReportsLess) -> str:
    account = facts.account
    if account is None or account.total is None:
        return "No GPU memory of a TensorFlow process was read."
    beside = account.total - sum(pool.in_use or 0 for pool in account.pools)
    return (
        f"Of {format_bytes(account.total)} by nvidia-smi, {format_bytes(beside)} are not tensors: cached memory, "
        "CUDA's context, libraries."
    )


def _section(say: Callable[P, Iterable[str]], *figures: P.args, **named: P.kwargs) -> tuple[str, ...]:
    """Return the paragraphs of a section; if it raises, one that reports the error, so that other sections remain."""
    try:
        return tuple(say(*figures, **named))
    except Exception as error:
        return (f"This cannot be answered: {describe(error)}.",)


def _all_taken(facts: AllTaken) -> Iterator[str]:
    yield _as_it_was(facts)
    if facts.chosen is not None:
        yield f"tfmemtop was told to turn growth {facts.chosen} for this run, which overrides the script."
    yield _calls(facts.calls)
    if facts.made_at:
        made = "; ".join(dict.fromkeys(line_with_code(site) for site in facts.made_at[:_LISTED]))
        yield f"TensorFlow initialised its devices (fixing growth and limits) at {made}."


def _as_it_was(facts: AllTaken) -> str:
    if facts.kind is PoolKind.NO_DEVICE:
        return "TensorFlow used no GPU in this run, as far as was seen."
    if facts.kind is PoolKind.CPU_ONLY:
        return "TensorFlow used no GPU in this run, as far as was seen. Its pool on the CPU always grows."
    if facts.kind is PoolKind.CUDA:
        return "The allocator was cuda_malloc_async: CUDA's own pool takes what is needed, with growth or without."
    if facts.kind is PoolKind.GROWING:
        return _grown(facts)
    if facts.kind is PoolKind.RESERVED:
        return "Growth was off in this run, so the pool took all that it could have at once."
    return "Growth was not the same on all GPUs, or is not known."


def _the_pool(peaks: Peaks) -> str:
    return "the largest pool" if peaks.several else "the pool"


def _calls(calls: tuple[events.Requested, ...]) -> str:
    if not calls:
        return "The script did not call set_memory_growth."
    asked = "; ".join(
        f"{line_of(callsite(call))} called {call_text(call)}" + (f", which raised {call.error}" if call.error else "")
        for call in calls[:_LISTED]
    )
    more = f" ({len(calls)} such calls in all.)" if len(calls) > _LISTED else ""
    return f"The script asked for growth: {asked}.{more}"


def _grown(facts: AllTaken) -> str:
    peaks = facts.peaks
    came_to = f"the whole process came to {format_bytes(peaks.process_total)}"
    if peaks.pool is not None:
        came_to = f"{_the_pool(peaks)} came to {format_bytes(peaks.pool)}"
    took = "still took most of" if facts.most_of_card else "did not take"
    return (
        f"Growth was on, and TensorFlow {took} the whole card: {came_to} of its {format_bytes(facts.card)}, with "
        f"{format_bytes(peaks.in_use)} in use at the peak. Besides the pool every process has a CUDA context and "
        f"libraries: {BESIDE_POOLS}."
    )


def _full_not_used(facts: FullNotUsed) -> Iterator[str]:
    told = alike_gpus((index, _taken_and_busy(card)) for index, card in facts.cards)
    for words, numbers in told:
        counted_apart = ""
        if words == told[-1][0]:
            counted_apart = " Reserved and cached memory counts as taken, even if unused."
        yield f"{gpus(numbers)}: {words}{counted_apart}"
    pool, used = facts.peaks.pool, facts.peaks.in_use
    if pool is not None and used is not None:
        share = used / pool if pool else 0.0
        yield (
            f"Of {_the_pool(facts.peaks)}, {format_bytes(pool)} at its largest, {format_bytes(used)} were in use at "
            f"the peak ({share:.0%})."
        )
    elif used is not None:
        yield f"{format_bytes(used)} were in use at the peak; how large the pool was is not known without the probe."
    if facts.fragmentation is not None and facts.fragmentation >= _NOTABLY_CUT_UP:
        yield (
            f"By the last map {facts.fragmentation:.0%} of the pool's free memory lay outside its largest free chunk. "
            "That matters only where the pool cannot grow."
        )
    if not facts.cards and used is None:
        yield "Nothing was read of TensorFlow's memory in this run."


def _taken_and_busy(card: TakenAndBusy) -> str:
    of = f"{format_bytes(card.taken)} of {format_bytes(card.whole)}"
    taken = f"at most {of} were taken while TensorFlow had it"
    if card.own is not None and card.own < card.taken * _NEARLY_ALL:
        taken += f" (by this run at most {format_bytes(card.own)})"
    if card.busy is None:
        return f"{taken}, and how busy it was is not known."
    return f"{taken}, and GPU utilisation averaged {card.busy:.0f}%."


def _efficiently(facts: Efficiently) -> Iterator[str]:
    if facts.peak is None:
        yield "Nothing was read of TensorFlow's memory in this run, so there is no figure to go by."
        return
    each = " and ".join(f"{format_bytes(peak)} on {device}" for device, peak in facts.each)
    yield _peak_in_use(facts, each or format_bytes(facts.peak))
    if facts.failed and facts.needed is not None:
        yield _needed(facts.peak, facts.needed)
    if facts.limit is not None:
        yield from sentences(facts.limit)


def _peak_in_use(facts: Efficiently, peak: str) -> str:
    if facts.failed:
        return f"The run had {peak} in use at its peak. A request then failed, so how much the run needs is not known."
    if facts.leaks:
        return f"The run had {peak} in use at its peak, and its use kept rising: how much it needs is not known."
    if facts.going:
        return f"The run had {peak} in use at its peak so far."
    if not facts.good_end:
        return f"The run had {peak} in use at its peak. It was cut short, so how much it needs is not known."
    return f"The run had {peak} in use at its peak."


def _command(facts: Efficiently) -> tuple[str, ...]:
    if facts.limit is None or facts.limit.is_guess:
        return ()
    return kernel_installed(facts.limit) if facts.kernel else started(facts.limit, facts.argv)


def _needed(peak: int, needed: int) -> str:
    if needed > peak:
        return f"The last request that failed needed {format_bytes(needed)} in use."
    return (
        f"The request that failed would have brought use to {format_bytes(needed)}, no more than the peak, so size was "
        "not the problem."
    )


def _code(facts: Efficiently) -> tuple[str, ...]:
    return () if facts.limit is None or facts.limit.is_guess else code(facts.limit)


def _growth(facts: GrowthEffect) -> Iterator[str]:
    if facts.kind is PoolKind.CUDA:
        yield "Growth changes nothing with cuda_malloc_async, whose pool is CUDA's own."
        return
    yield _with_and_without(facts)
    if facts.steps and facts.kind is not PoolKind.RESERVED:
        yield _seen_to_grow(facts)
    yield (
        "Growth changes when memory is taken, not what the model needs: the peak in use is much the same. The pool "
        "keeps what it has taken until the process ends; only after a failed allocation does it give back free regions."
    )


def _with_and_without(facts: GrowthEffect) -> str:
    peaks = facts.peaks
    with_it = f"; with it {_the_pool(peaks)} came to {format_bytes(peaks.pool)}." if peaks.pool is not None else "."
    if facts.kind is PoolKind.GROWING and facts.asked_limit:
        return (
            "Growth was on, and a limit was set: without growth TensorFlow would have reserved all of its "
            f"{format_bytes(facts.asked_limit)} at the first allocation{with_it}"
        )
    if facts.kind is PoolKind.GROWING:
        free = f", {format_bytes(facts.free)}" if facts.free is not None else ""
        own = f"{format_bytes(facts.own_limit)}: " if facts.own_limit is not None else ""
        return (
            f"Growth was on. Without it TensorFlow would have reserved {own}nearly all that was free at the start{free}"
            f"{with_it}"
        )
    if facts.kind is PoolKind.RESERVED:
        return (
            f"Growth was off: {_taken_at_once(facts)}. With growth a pool holds what is in use at the peak, here at "
            f"most {format_bytes(peaks.in_use)}, and usually at most twice that."
        )
    return "Growth is a setting for GPUs, and tfmemtop saw TensorFlow use none."


def _taken_at_once(facts: GrowthEffect) -> str:
    """Return the clause about what TensorFlow reserved at the first allocation."""
    if not facts.asked_limit:
        pool = f", {format_bytes(facts.peaks.pool)}" if facts.peaks.pool is not None else ""
        return f"{_the_pool(facts.peaks)} took nearly all that was free at the first allocation{pool}"
    whole = format_bytes(facts.asked_limit)
    if facts.taken is None:
        return f"TensorFlow reserves the whole limit, {whole}, at the first allocation"
    if facts.taken < facts.asked_limit * _ALL:
        return f"of its limit of {whole} TensorFlow got {format_bytes(facts.taken)} at the first allocation"
    return f"TensorFlow took the whole limit, {format_bytes(facts.taken)}, at the first allocation"


def _seen_to_grow(facts: GrowthEffect) -> str:
    shown = ", ".join(
        f"{format_bytes(step.before)} to {format_bytes(step.after)} at {spoken(step.at - facts.started)}"
        for step in facts.steps[-_LISTED:]
    )
    which = f", the last {_LISTED}" if len(facts.steps) > _LISTED else ""
    times = counted(len(facts.steps), "time")
    return f"As far as was seen, the pool grew {times}{which}: {shown}. Usually each step is twice the one before."


def _reports_less(facts: ReportsLess) -> Iterator[str]:
    account = facts.account
    if account is None:
        yield _not_of_tensorflow(facts.held)
        return
    if reason := why_they_differ(account):
        yield reason
    yield "; ".join(f"{name} says {words}" for name, words in others_say(account)) + "."
    split = "; ".join(_part(*part) for part in parts(account))
    yield f"Process {account.pid} on GPU {account.gpu}, as last seen: {split}."
    for held in facts.holdings:
        if held.excess:
            yield f"{sentence(counted_kinds(held))}."
            continue
        kinds = "; ".join(_part(*part) for part in in_use(held))
        yield f"In use on {held.device}, by the last census: {kinds}."


def _not_of_tensorflow(held: int | None) -> str:
    if not held:
        return "No GPU memory of a TensorFlow process was read in this run."
    return f"The run held up to {format_bytes(held)} of a GPU, and no allocator of TensorFlow was read in it."


def _part(name: str, figure: str, meaning: str) -> str:
    return f"{name} {figure}" + (f" ({meaning})" if meaning else "")
