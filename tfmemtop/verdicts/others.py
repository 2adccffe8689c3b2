"""Other processes on the run's GPUs, and what they leave for it."""

from collections.abc import Iterator
from pathlib import PurePath

from tfmemtop.state import State
from tfmemtop.state.lookup import of_run
from tfmemtop.state.model import DeviceState, ProcessState
from tfmemtop.units import format_bytes
from tfmemtop.verdicts.finding import Finding
from tfmemtop.verdicts.look import GROWTH_CODE, uses

HELD_SHARE = 0.1
"""Of a card: what others held at the start and is worth telling."""

FULL_SHARE = 0.9


def others_hold_the_card(state: State) -> Iterator[Finding]:
    """Much of the card was taken when the run started, and TensorFlow's limit is what was left."""
    run = state.run
    if run is None:
        return
    told = set()
    for use in uses(state):
        card = use.card
        if card is None or card.info.index in told or card.info.index not in run.before:
            continue
        used, free = run.before[card.info.index]
        whole = card.info.total
        if whole is None or used < whole * HELD_SHARE or use.asked_limit is not None or use.asynchronous:
            continue
        limit = use.reading.limit if use.reading else None
        if limit is not None and limit > whole - used:
            continue  # by the time that TensorFlow made its devices they had gone
        told.add(card.info.index)
        at_most = f"its limit is {format_bytes(limit)}" if limit else f"it can take {format_bytes(free)} at most"
        yield Finding(
            "warning",
            f"{use.place}: other processes held {format_bytes(used)} of the card's {format_bytes(whole)} when the run "
            f"started{_who(state, card)}; TensorFlow counted what was free then: {at_most}, even once they end.",
            "[R] starts anew, when the card is free; [V] takes another GPU",
            "TensorFlow reads the free memory once, when it makes its devices, and takes that less a small reserve as "
            "the limit of its pool, with growth and without. What others give back later it never asks for.",
            key="others-hold",
            place=use.place,
        )


def _who(state: State, card: DeviceState) -> str:
    """The largest of the others on *card* now, in brackets."""
    others = [share for pid, share in card.by_pid.items() if not of_run(state, pid) and share.used]
    if not others:
        return ""
    largest = max(others, key=lambda share: share.used or 0)
    process = state.processes.get(largest.pid)
    named = _name(_script(process.seen.command)) if process else ""
    return f" (the largest now is process {largest.pid}{', ' + named if named else ''}: {format_bytes(largest.used)})"


def two_reserve_everything(state: State) -> Iterator[Finding]:
    """Two processes of one script share a card, and neither leaves anything to the other."""
    told = set()
    for use in uses(state):
        card, mine = use.card, state.processes.get(use.pid)
        if use.growth is not False or use.asked_limit is not None or use.asynchronous or card is None or mine is None:
            continue
        whole, held = card.info.total, card.by_pid.get(use.pid)
        if whole is None or held is None or held.used is None or card.info.index in told:
            continue
        for share in card.by_pid.values():
            other = state.processes.get(share.pid)
            if share.pid == use.pid or other is None or share.used is None:
                continue
            both, growth = _alike(mine, other), _growth(other)
            if not both or growth or held.used + share.used < whole * FULL_SHARE:
                continue
            reserved = (
                "without growth each reserves all that is free when it starts, and the later one gets the rest"
                if growth is False
                else f"growth is off in {use.pid}, so it took all that was free when it started; whether it is on in "
                f"{share.pid} is not known here"
            )
            told.add(card.info.index)
            yield Finding(
                "warning",
                f"GPU {card.info.index}: two processes of {both}, {use.pid} ({format_bytes(held.used)}) and "
                f"{share.pid} ({format_bytes(share.used)}), fill the card: {reserved}.",
                "[G] growth on for both, or [L] a limit for each; [V] another GPU",
                "Two TensorFlow processes share a card well only if each is told what it may take: growth, so that it "
                "takes what it needs, or a limit. A worker process (multiprocessing, a data loader, a second notebook) "
                "that imports TensorFlow and touches the GPU reserves memory like any other; hide the GPU from it "
                "if it does not compute there.",
                (*GROWTH_CODE, "", 'tf.config.set_visible_devices([], "GPU")  # in a worker that needs no GPU'),
                "two-reserve",
                f"GPU {card.info.index}",
            )
            break


def _growth(process: ProcessState) -> bool | None:
    """Whether growth is on there; ``None`` where nothing is known of it."""
    hooked = process.hooked
    growths = [effective.growth for name, effective in hooked.effective.items() if "GPU" in name] if hooked else []
    return None if not growths or None in growths else any(growths)


def _alike(mine: ProcessState, other: ProcessState) -> str:
    """What both are of: one run, or one script with whatever arguments; empty where they have nothing in common."""
    if mine.hooked and other.hooked and mine.seen.run == other.seen.run:
        return "this run"
    first, second = _script(mine.seen.command), _script(other.seen.command)
    if first == second:
        return _name(first)
    # Of a relative path it is not known where it begins.
    relative = not (PurePath(first).is_absolute() and PurePath(second).is_absolute())
    same_name = first.endswith(".py") and PurePath(first).name == PurePath(second).name
    return _name(first) if relative and same_name else ""


def _name(script: str) -> str:
    return PurePath(script).name if script.endswith(".py") else script[:60]


def _script(command: list[str]) -> str:
    """What tells one script from another in a command line: its file or module, not its arguments."""
    for at, word in enumerate(command[1:], 1):
        if word.endswith(".py"):
            return word
        if word == "-m":
            return " ".join(command[at : at + 2])
        if not word.startswith("-"):
            break
    return " ".join(command)
