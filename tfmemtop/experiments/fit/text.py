"""The text about a search for a limit: a line for each try, and at the end what to set. Pure."""

from collections.abc import Sequence

from tfmemtop.events import HookAbsence
from tfmemtop.experiments.fit.search import Result, Search, Tried, TryOutcome
from tfmemtop.experiments.fit.session import Phase, SessionTries, Stopped, Why
from tfmemtop.experiments.fit.watch import Goal, Progress, Stage
from tfmemtop.findings.ending import ending, still_held
from tfmemtop.findings.limit_texts import IN_THE_SCRIPT, code, command_line
from tfmemtop.findings.notice_texts import reason_text, say
from tfmemtop.suggested import SuggestedLimit
from tfmemtop.units import MIB, UNKNOWN, aligned, counted, format_bytes

NOTEWORTHY = 0.02
"""Differences in speed below this share do not count: two runs hardly ever have so similar a speed."""


def limit_words(limit: int | None) -> str:
    """Return the name of a try with that *limit*, in bytes."""
    return "no limit" if limit is None else f"limit {format_bytes(limit)}"


def goal_text(goal: Goal) -> str:
    """Return the goal: ``Goal: 30 s after TensorFlow's first allocation``, ``Goal: 200 steps``."""
    if goal.steps is not None:
        return f"Goal: {counted(goal.steps, 'step')}"
    return f"Goal: {goal.seconds or 0:g} s after TensorFlow's first allocation"


def outcome(how: TryOutcome) -> str:
    """Return how a try went."""
    if how.result is Result.REACHED:
        return "passed"
    if how.result is Result.FINISHED:
        return "passed: it ran to its end"
    if how.result is Result.INTERRUPTED:
        return "interrupted"
    if how.result is Result.UNUSED:
        return f"tfmemtop did not see TensorFlow use {how.kind} memory"
    if how.result is Result.UNLIMITED:
        return f"the limit had no effect: TensorFlow's pool had a limit of {format_bytes(how.limit)}"
    if how.result is Result.TOO_SLOW:
        return f"too slow: {how.steps} steps of a tf.function in {how.seconds:.0f} s"
    if how.result is Result.OUT_OF_MEMORY:
        return "out of memory" + (f", asking for {format_bytes(how.requested)}" if how.requested else "")
    return ending(how.ending) + (", out of memory" if how.complained else "")


def unproved(how: TryOutcome) -> list[str]:
    """Return why a try proves nothing, and what helps, as lines."""
    if how.result is Result.UNLIMITED:
        return [
            f"The limit had no effect: TensorFlow's pool had a limit of {format_bytes(how.limit)}.",
            "Such a try proves nothing. Perhaps the script sets a limit of its own.",
        ]
    said = [
        f"tfmemtop did not see TensorFlow use {how.kind} memory. Such a try proves nothing: the limit had no effect."
    ]
    if how.kind == "GPU":
        said.append("If the script is to use the CPU, add --gpus none: the limit is then that of the CPU's pool.")
    return said


def result(tried: Tried) -> str:
    """Return how a try went, for the line that begins with its limit."""
    text = f"{outcome(tried.how)} ({tried.duration_s:.0f} s)"
    if tried.peak_in_use is not None:
        text += f"; peak in use {format_bytes(tried.peak_in_use)}, pool {format_bytes(tried.pool)}"
    return text + (f"; {speed_words(tried)}" if tried.speed is not None else "")


def progress(fit: SessionTries) -> str:
    """Return how far the current try has come."""
    if fit.phase is Phase.STARTING:
        return "waiting until the memory of the run before is free"
    if fit.phase is Phase.RUNNING:
        return _so_far(fit.progress)
    if fit.phase in (Phase.REPLAYING, Phase.PREDICTING):
        return "replaying its allocations"
    return "ending" if fit.phase is Phase.ENDING else ""


def _so_far(made: Progress) -> str:
    if made.stage is Stage.BEFORE_USE:
        return "waiting for TensorFlow's first allocation"
    if made.stage is Stage.REACHED:
        return "goal reached; waiting for pending allocations"
    if made.goal.steps is not None:
        return f"{made.steps} of {made.goal.steps} steps"
    return f"{made.seconds:.0f} of {made.goal.seconds or 0:g} s"


def stopped_words(stopped: Stopped) -> str:
    """Return why a search was stopped before its end."""
    if stopped.why is Why.MEMORY_HELD:
        why = f": {still_held(stopped.held)}" if stopped.held else ""
        return f"the next try would not have had all the memory{why}"
    if stopped.notice is not None:
        return say(stopped.notice).text
    return {
        Why.INTERRUPTED: "interrupted",
        Why.OTHER_RUN: "another run was started meanwhile",
        Why.RUN_ENDED: "the run was ended by hand",
        Why.ENGINE_GONE: "the engine has ended",
    }[stopped.why]


def speed_words(tried: Tried) -> str:
    """Return the speed of a try: ``12.3 steps/s``; a dash where it is not known."""
    if tried.speed is None:
        return UNKNOWN
    return f"{tried.speed:.0f} {tried.speed_unit}" if tried.speed >= 100 else f"{tried.speed:.3g} {tried.speed_unit}"


def from_the_largest(tried: Sequence[Tried]) -> list[Tried]:
    """Return *tried* in the order of :func:`table`: the largest limit first."""
    return sorted(tried, key=lambda one: -(one.limit or 1 << 62))


def table(tried: Sequence[Tried], *, pools: bool = True) -> list[str]:
    """Return the lines of the table: a heading, and all tries from the largest limit down.

    Each has its speed, compared with that of the first. A try whose allocations were recorded is slower for that
    reason, and is not compared. With *pools*, a column shows how large the pool became.
    """
    first = next((one for one in from_the_largest(tried) if one.speed is not None and not one.traced), tried[0])
    lines = [("LIMIT", "PEAK IN USE", "POOL" if pools else "", "SPEED", "", "RESULT")]
    lines += [
        (
            "none" if one.limit is None else format_bytes(one.limit),
            format_bytes(one.peak_in_use),
            format_bytes(one.pool) if pools else "",
            speed_words(one),
            "" if one is first and not one.traced else _against(one, first),
            outcome(one.how),
        )
        for one in from_the_largest(tried)
    ]
    return aligned(lines, {5})


def _against(tried: Tried, first: Tried) -> str:
    if tried.traced and tried.speed is not None:
        return "recorded"
    if tried.speed is None or first.speed is None or tried.speed_unit != first.speed_unit:
        return ""
    change = tried.speed / first.speed - 1
    return "as fast" if abs(change) < NOTEWORTHY else f"{change:+.0%}"


def finding(search: Search) -> list[str]:
    """Return what was found, or why nothing was, as lines; and why the limit differs from the peak, where it does."""
    first, limit, below = search.tried[0], search.limit, search.failed_below
    if limit is None:
        return [_nothing_found(search), *(unproved(search.unproved.how) if search.unproved else [])]
    lines = [f"The smallest limit that worked: {format_bytes(limit)}."]
    lines[0] += f" {format_bytes(below)} did not." if below is not None else " Nothing smaller was tried."
    if search.unproved:
        lines += [
            f"The search ended at the try with {limit_words(search.unproved.limit)}.",
            *unproved(search.unproved.how),
        ]
    elif not search.settled:
        lines[0] += " More tries would narrow it down further."
    peak = first.peak_in_use or 0
    if limit > peak + MIB and below is not None and below >= peak:
        lines.append(
            f"It is {format_bytes(limit - peak)} above the first try's peak in use: a growing pool takes memory region "
            "by region, regions never merge, and a tensor needs one free chunk within a region."
        )
    elif limit < peak:
        lines.append(
            f"It is {format_bytes(peak - limit)} below the first try's peak in use: when there is room to spare, the "
            "allocator hands out larger chunks than were asked for."
        )
    return lines


def conclusion(search: Search, stopped: Stopped | None, hint: HookAbsence | None) -> list[str]:
    """Return the lines of :func:`finding`, and what the replay predicted.

    Where they are given, the lines also contain why the search was *stopped* before its end, and why the hook is
    absent (*hint*).
    """
    said = finding(search) if search.tried else ["Nothing was found: no try was completed."]
    said += predicted(search)
    if stopped:
        said.append(f"The search was not completed: {stopped_words(stopped)}.")
    if hint:
        said.append(f"The hook could not get into the script: {reason_text(hint)}.")
    return said


def predicted(search: Search) -> list[str]:
    """Return what the replay of the first try predicted, and what the tries proved; empty if it predicted nothing."""
    first = search.tried[0] if search.tried else None
    if first is None or first.surely is None or first.at_least is None:
        return []
    tried = [f"{format_bytes(search.limit)} passed"] if search.limit is not None else []
    tried += [f"{format_bytes(search.failed_below)} failed"] if search.failed_below is not None else []
    return [
        f"The replay of the first try predicted: {format_bytes(first.surely)} is enough, at least "
        f"{format_bytes(first.at_least)} is needed. Tries: {', '.join(tried) or 'none passed or failed'}."
    ]


def _nothing_found(search: Search) -> str:
    first = search.tried[0]
    if search.unproved:
        return f"Nothing was found: the try with {limit_words(search.unproved.limit)} proves nothing."
    if not first.passed:
        if first.limit is not None:
            return f"Nothing was found: the largest limit to try, {format_bytes(first.limit)}, was not enough."
        return f"Nothing was found: the script does not pass without a limit either ({outcome(first.how)})."
    if first.peak_in_use is None:
        return "Nothing was found: tfmemtop saw no TensorFlow pool in the script."
    if search.has_next():
        return "Nothing was found: the search was ended before any limit had worked."
    tries = f"{len(search.tried)} {'try' if len(search.tried) == 1 else 'tries'}"
    return f"Nothing was found in {tries}: no limit has worked yet; more tries may help."


def advice(suggested: SuggestedLimit | None, command: Sequence[str]) -> list[str]:
    """Return the setting to use, as an option of tfmemtop and as lines of code; empty if none was found."""
    if suggested is None:
        return []
    return [
        f"With a margin: {format_bytes(suggested.size)}.",
        "",
        f"  {command_line(suggested, command)}",
        "",
        IN_THE_SCRIPT,
        "",
        *(f"  {line}" for line in code(suggested)),
    ]
