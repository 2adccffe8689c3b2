"""The five questions people ask about TensorFlow's GPU memory, answered for one run with its own figures. Pure."""

import shlex
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from tfmemtop.failure import describe
from tfmemtop.state.anatomy import anatomies
from tfmemtop.state.holdings import holdings
from tfmemtop.state.lookup import PINNED
from tfmemtop.state.model import RunState, State
from tfmemtop.units import format_bytes, format_duration
from tfmemtop.verdicts.accounting import in_use, others_say, parts, why_they_differ
from tfmemtop.verdicts.course import Card, Course, Told
from tfmemtop.verdicts.ending import ending
from tfmemtop.verdicts.gather import alike, gpus, said
from tfmemtop.verdicts.limits import fitting_limit
from tfmemtop.verdicts.look import count, hooked_of_run, maker, uses, where
from tfmemtop.verdicts.pool import WHOLE_CARD

ALL_TAKEN = "Why does TensorFlow still allocate all GPU memory despite setting allow_growth to true?"
FULL_NOT_USED = "Why is my TensorFlow GPU memory full but not fully utilized?"
EFFICIENTLY = "How can TensorFlow efficiently allocate GPU memory?"
GROWTH = "How does set_memory_growth affect TensorFlow 2's memory usage?"
REPORTS_LESS = "Why does TensorFlow report less GPU memory than expected?"

_BELONGS = {
    "asked-too-late": ALL_TAKEN,
    "growth-dropped": ALL_TAKEN,
    "growth-refused": ALL_TAKEN,
    "growth-of-no-device": ALL_TAKEN,
    "growth-differs": ALL_TAKEN,
    "growth-overridden": ALL_TAKEN,
    "growth-word-ignored": ALL_TAKEN,
    "whole-card": ALL_TAKEN,
    "two-reserve": ALL_TAKEN,
    "full-but-idle": FULL_NOT_USED,
    "cached-idle": FULL_NOT_USED,
    "fragmented": FULL_NOT_USED,
    "others-hold": FULL_NOT_USED,
    "leak": EFFICIENTLY,
    "retracing": EFFICIENTLY,
    "limit-tight": EFFICIENTLY,
    "limit-loose": EFFICIENTLY,
    "logical-beyond-card": EFFICIENTLY,
    "no-gpu": EFFICIENTLY,
    "grown-beyond-need": GROWTH,
    "outside-the-pool": REPORTS_LESS,
}

_OWN_SENTENCE = {"ended", "releasing"}


P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class Answer:
    """``paragraphs`` of plain words; ``found`` are findings, each with the time it held; ``code`` for the script."""

    question: str
    paragraphs: tuple[str, ...]
    found: tuple[str, ...] = ()
    code: tuple[str, ...] = ()


def heading(course: Course) -> str:
    """The run in one sentence."""
    return " ".join(_told(_heading, course))


def _heading(course: Course) -> Iterator[str]:
    run = course.state.run
    if run is None:
        yield "No script was started in this recording."
        return
    took = (run.ended if run.ended is not None else course.state.now) - run.started
    how = ending(run) or "not ended"
    kinds = {index: (device.info.name, device.info.total) for index, device in course.state.devices.items()}
    cards = ", ".join(
        f"{gpus(numbers)} {name} with {format_bytes(total)}" + (" each" if len(numbers) > 1 else "")
        for (name, total), numbers in _alike(kinds.items())
    )
    where = cards or "a machine without a GPU"
    yield f"Run {run.run}, {' '.join(run.argv)}: {format_duration(took)}, {how}; on {where}."


def answers(course: Course) -> list[Answer]:
    """One answer a question, in the order above; where a figure is not known, it says so."""
    state = course.state
    if state.run is None:
        return []
    told: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
        ALL_TAKEN: (_told(_all_taken, state, state.run), ()),
        FULL_NOT_USED: (_told(_full_not_used, course), ()),
        EFFICIENTLY: (_told(_efficiently, state, state.run), _told(_code, state.run)),
        GROWTH: (_told(_growth, state, state.run), ()),
        REPORTS_LESS: (_told(_reports_less, course), ()),
    }
    return [
        Answer(
            question,
            paragraphs,
            _told(_found, course, [t for t in course.told if _BELONGS.get(t.finding.key) == question]),
            code,
        )
        for question, (paragraphs, code) in told.items()
    ]


def _told(section: Callable[P, Iterable[str]], *figures: P.args, **named: P.kwargs) -> tuple[str, ...]:
    """The *section*'s paragraphs; if it fails, one that says so, while the others are told."""
    try:
        return tuple(section(*figures, **named))
    except Exception as error:
        return (f"This cannot be told: {describe(error)}.",)


def also_found(course: Course) -> list[str]:
    """Findings that belong to none of the questions."""
    others = [t for t in course.told if t.finding.key not in _BELONGS and not _aside(t.finding.key)]
    return list(_told(_found, course, others))


def _aside(key: str) -> bool:
    return key in _OWN_SENTENCE or (key.startswith("notice-") and not key.startswith("notice-left-out"))


def _found(course: Course, told: Iterable[Told]) -> Iterator[str]:
    for group in alike(told, lambda one: one.finding):
        finding = said([one.finding for one in group])
        first, last = min(one.first for one in group), max(one.last for one in group)
        until = "on" if last >= course.end - 2 else f"to {format_duration(last)}"
        remedy = f" What helps: {finding.remedy}." if finding.remedy else ""
        yield f"(from {format_duration(first)} {until}) {finding.text}{remedy}"


def _growths(run: RunState) -> set[bool]:
    return {e.growth for name, e in run.effective.items() if name.startswith("GPU") and e.growth is not None}


def _on_gpu(run: RunState) -> bool:
    return any(name.startswith("GPU") for name in run.effective)


def _all_taken(state: State, run: RunState) -> Iterator[str]:
    calls = [r for _, hooked in hooked_of_run(state) for r in hooked.requested if r.call == "set_memory_growth"]
    if calls:
        asked = "; ".join(
            f"{where(r)} called set_memory_growth({r.arguments})" + (f", which raised {r.error}" if r.error else "")
            for r in calls[:4]
        )
        more = f" ({len(calls)} such calls in all.)" if len(calls) > 4 else ""
        yield f"The script asked for growth: {asked}.{more}"
    else:
        yield "The script did not call set_memory_growth."
    makers = [by for _, hooked in hooked_of_run(state) if (by := maker(hooked))]
    if makers:
        made = "; ".join(dict.fromkeys(makers[:4]))
        yield f"TensorFlow made its devices, and settled growth and limits with that, at {made}."
    if run.settings.growth is not None:
        yield f"tfmemtop was told to turn growth {run.settings.growth} for this run, which wins."
    growths = _growths(run)
    if not _on_gpu(run):
        yield "TensorFlow used no GPU in this run, as far as was seen" + (
            "; its pool on the CPU always grows." if any(name.startswith("CPU") for name in run.effective) else "."
        )
    elif _asynchronous(run):
        yield "The allocator was cuda_malloc_async: CUDA's own pool takes what is needed, with growth or without."
    elif growths == {True}:
        pool = f"the pool came to {format_bytes(run.peak_pool)}" if run.peak_pool is not None else (
            f"the whole process came to {format_bytes(run.peak_process_total)}"
        )  # fmt: skip
        card, most = _whole(state), run.peak_pool if run.peak_pool is not None else run.peak_process_total
        much = most is not None and card is not None and most >= card * WHOLE_CARD
        yield (
            f"Growth was on, and TensorFlow {'still took most of' if much else 'did not take'} the whole card: "
            f"{pool} of its {format_bytes(card)}, with {format_bytes(run.peak_in_use)} in use at the peak. Beside the "
            "pool every process has a CUDA context and libraries, some 610 MiB on an H200."
        )
    elif growths == {False}:
        yield "Growth was off in this run."


def _whole(state: State) -> int | None:
    totals = [device.info.total for device in state.devices.values() if device.info.total is not None]
    return max(totals, default=None)


def _full_not_used(course: Course) -> Iterator[str]:
    run = course.state.run
    told = _alike((index, _taken_and_busy(course, index, card)) for index, card in course.cards.items())
    for words, numbers in told:
        yield f"{gpus(numbers)}: {words}" + (
            " The two are counted apart: what is reserved or cached is taken, at work or not."
            if words == told[-1][0]
            else ""
        )
    if run and run.peak_pool is not None and run.peak_in_use is not None:
        share = run.peak_in_use / run.peak_pool if run.peak_pool else 0.0
        yield (
            f"Of the pool, {format_bytes(run.peak_pool)} at its largest, {format_bytes(run.peak_in_use)} were in use "
            f"at the peak ({share:.0%})."
        )
    elif run and run.peak_in_use is not None:
        in_use = format_bytes(run.peak_in_use)
        yield f"{in_use} were in use at the peak; how large the pool was is not known without the probe."
    if run and run.fragmentation is not None:
        yield (
            f"At the newest map {run.fragmentation:.0%} of the pool's free memory lay outside its largest free chunk; "
            "that matters only where the pool cannot grow any more."
        )
    if not course.cards and not (run and run.peak_in_use is not None):
        yield "Nothing was read of TensorFlow's memory in this run."


def _taken_and_busy(course: Course, index: int, card: Card) -> str:
    whole = course.state.devices[index].info.total
    taken = f"at most {format_bytes(card.most_used)} of {format_bytes(whole)} were taken while TensorFlow had it"
    if card.busy is None:
        return f"{taken}, and how busy it was is not known."
    return f"{taken}, and its processors were busy {card.busy:.0f}% of the time."


K = TypeVar("K", bound=Hashable)


def _alike(told: Iterable[tuple[int, K]]) -> list[tuple[K, list[int]]]:
    """What is told of GPUs, each thing once, with the numbers of those it holds for."""
    numbers: dict[K, list[int]] = {}
    for index, thing in told:
        numbers.setdefault(thing, []).append(index)
    return list(numbers.items())


def _asynchronous(run: RunState) -> bool:
    return any(e.allocator == "cuda_malloc_async" for name, e in run.effective.items() if name.startswith("GPU"))


def _efficiently(state: State, run: RunState) -> Iterator[str]:
    if run.peak_in_use is None:
        yield "Nothing was read of TensorFlow's memory in this run, so there is no figure to go by."
        return
    limit = format_bytes(fitting_limit(run.peak_in_use))
    if run.out_of_memory:
        yield (
            f"The run had {format_bytes(run.peak_in_use)} in use at its peak, and then asked for more than there was: "
            "how much it needs is not known."
        )
        least = max((a.in_use + a.asked for a in anatomies(state) if a.asked and a.in_use is not None), default=None)
        if least is not None and least > run.peak_in_use:
            yield f"For what failed last it would have taken {format_bytes(least)} in use, and a limit above that."
        elif least is not None:
            yield (
                f"With what failed last {format_bytes(least)} would have been in use, no more than at the peak: it was "
                "not the sum that was too large."
            )
        return
    yield (
        f"What the run needed: {format_bytes(run.peak_in_use)} in use at its peak. A limit of {limit}, a tenth more, "
        "would have fitted it, if fragmentation leaves it that tenth; with growth the pool stays below that while less "
        "is needed."
    )
    if run.ended is None or run.exit_code != 0:
        yield "It was not run to a good end: what it would have needed later is not known."
    if _on_gpu(run):
        mib = fitting_limit(run.peak_in_use) // 2**20
        yield f"To try it: tfmemtop --growth on --memory-limit {mib}M -- {shlex.join(run.argv)}"


def _code(run: RunState) -> tuple[str, ...]:
    if run.peak_in_use is None or run.out_of_memory or not _on_gpu(run):
        return ()
    mib = fitting_limit(run.peak_in_use) // 2**20
    return (
        "import os",
        "",
        'os.environ["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"  # before TensorFlow is imported; a limit alone drops growth',
        "import tensorflow as tf",
        "",
        'for gpu in tf.config.list_physical_devices("GPU"):',
        f"    limit = tf.config.LogicalDeviceConfiguration(memory_limit={mib})",
        "    tf.config.set_logical_device_configuration(gpu, [limit])",
    )


def _growth(state: State, run: RunState) -> Iterator[str]:
    growths = _growths(run)
    free = max((free for _, free in run.before.values()), default=None)
    asked = sum(use.asked_limit or 0 for use in uses(state))
    if _asynchronous(run):
        yield "Growth changes nothing with cuda_malloc_async, whose pool is CUDA's own."
        return
    if growths == {True} and asked:
        yield (
            f"Growth was on, and a limit was set: without growth TensorFlow would have reserved all of its "
            f"{format_bytes(asked)} at the first allocation"
            + (f"; with it the pool came to {format_bytes(run.peak_pool)}." if run.peak_pool is not None else ".")
        )
    elif growths == {True}:
        yield (
            "Growth was on. Without it TensorFlow would have reserved nearly all that was free at the start"
            + (f", {format_bytes(free)}" if free is not None else "")
            + (f"; with it the pool came to {format_bytes(run.peak_pool)}." if run.peak_pool is not None else ".")
        )
    elif growths == {False}:
        yield (
            f"Growth was off: the pool took {'its whole limit' if asked else 'nearly all that was free'} at the first "
            f"allocation{', ' + format_bytes(run.peak_pool) if run.peak_pool is not None else ''}. With growth it "
            f"would have held at least the {format_bytes(run.peak_in_use)} in use at the peak, as a rule at most twice "
            "that."
        )
    else:
        yield "Growth is a setting of GPUs, and TensorFlow used none that was seen here."
    grown = [
        [growth for growth in pool.growths if growth.after > growth.before]
        for _, hooked in hooked_of_run(state)
        for name, pool in hooked.pools.items()
        if not name.startswith(PINNED)
    ]
    # Of several pools the largest: steps of two in one row would tell nothing.
    steps = max(grown, key=lambda growths: max((growth.after for growth in growths), default=0), default=[])
    if steps and growths != {False}:
        shown = ", ".join(
            f"{format_bytes(g.before)} to {format_bytes(g.after)} at {format_duration(g.at - run.started)}"
            for g in steps[-4:]
        )
        which = ", the last 4" if len(steps) > 4 else ""
        yield (
            f"The pool was seen to grow {count(len(steps), 'time')}{which}: {shown}. As a rule each step is twice the "
            "one before."
        )
    yield (
        "Growth changes when memory is taken, not what the model needs: the peak in use is much the same. What the "
        "pool has taken it keeps until the process ends; only after a failed allocation does it give back free regions."
    )


def _reports_less(course: Course) -> Iterator[str]:
    account = course.account
    if account is None:
        yield "No GPU memory of a TensorFlow process was read in this run."
        return
    yield f"Process {account.pid} on GPU {account.gpu}, as last seen: " + "; ".join(
        f"{name} {figure}" + (f" ({meaning})" if meaning else "") for name, figure, meaning in parts(account)
    ) + "."  # fmt: skip
    yield "; ".join(f"{name} says {words}" for name, words in others_say(account)) + "."
    if sentence := why_they_differ(account):
        yield sentence
    for held in holdings(course.state, account.pid):
        kinds = [f"{label} {figure}" + (f" ({meaning})" if meaning else "") for label, figure, meaning in in_use(held)]
        yield f"In use on {held.device}, by the last census: {'; '.join(kinds)}."
