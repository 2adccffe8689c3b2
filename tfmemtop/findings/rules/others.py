"""The rules for other processes on the run's GPUs, and for the memory that they leave to it."""

from collections.abc import Iterator
from pathlib import PurePath

import msgspec

from tfmemtop.findings.cause import Key
from tfmemtop.findings.finding import DeviceFinding, Said, Severity
from tfmemtop.findings.names import Place, place_name
from tfmemtop.findings.remedy import GROWTH, Action, Remedy
from tfmemtop.findings.rules import rule
from tfmemtop.findings.rules.busy import FULL_SHARE
from tfmemtop.findings.run_devices import RunDevice, run_devices
from tfmemtop.state import State
from tfmemtop.state.lookup import of_run
from tfmemtop.state.model import DeviceState, ProcessState
from tfmemtop.units import format_bytes

HELD_SHARE = 0.1
"""Share of a card. Less than this, held by other processes at the start, does not matter."""

_USED_SHARE = 0.5
"""Share of the limit. What others hold is no problem of a run that never had as much in use."""


class Holder(msgspec.Struct, frozen=True):
    """A process that holds ``used`` bytes of a card.

    ``script`` names what it runs, and ``workload`` what it belongs to, such as a container. Both are empty if unknown.
    """

    pid: int
    used: int
    script: str = ""
    workload: str = ""


class OthersHoldCard(DeviceFinding, frozen=True):
    """Other processes held ``used`` of the card's ``whole`` bytes when the run started, so TensorFlow's limit is lower.

    ``limit`` is that of the pool, ``None`` where it is not known. It is at most ``free``, the bytes that were free at
    the start. ``largest`` is the process that holds most of the card now, of all that do not belong to the run.
    ``peak`` are the most bytes that the pool had in use.
    """

    key = Key.OTHERS

    remedies = Action.RUN_WHEN_FREE, Action.USE_OTHER_GPU

    used: int
    whole: int
    free: int
    limit: int | None
    largest: Holder | None
    peak: int | None = None

    @property
    def severity(self) -> Severity:
        much = self.limit is None or self.peak is None or self.peak >= _USED_SHARE * self.limit
        return Severity.WARNING if much else Severity.INFO

    @property
    def said(self) -> Said:
        at_most = f"TensorFlow can take {format_bytes(self.free)} at most"
        if self.limit is not None:
            at_most = f"TensorFlow set its limit to what was free then, {format_bytes(self.limit)}"
        return Said(
            f"{place_name(self.place)}: {_who_held(self)} of the card's {format_bytes(self.whole)} when the run "
            "started.",
            "TensorFlow reads the free memory once, when it initialises its devices. It takes that, less a small "
            "reserve, as the limit of its pool, with growth and without. It never asks for what others free later.",
            figures=f"{at_most}. The limit stays when they have ended.",
        )


@rule(190)
def others_hold_the_card(state: State) -> Iterator[OthersHoldCard]:
    """Find cards of which much was taken when the run started, so that TensorFlow's limit is what was left."""
    told = set()
    for device in run_devices(state):
        if device.card is None or device.card.info.index in told:
            continue
        if found := _held_before(state, device, device.card):
            told.add(device.card.info.index)
            yield found


def _held_before(state: State, device: RunDevice, card: DeviceState) -> OthersHoldCard | None:
    before = state.run.before.get(card.info.index) if state.run else None
    whole = card.info.total
    if before is None or whole is None or device.asked_limit is not None or device.asynchronous:
        return None
    used, free = before
    limit = device.reading.limit if device.reading else None
    # The others had freed the memory before TensorFlow initialised its devices.
    gone_in_time = limit is not None and limit > whole - used
    if used < whole * HELD_SHARE or gone_in_time:
        return None
    return OthersHoldCard(device.place, used, whole, free, limit or None, _largest_of_others(state, card), device.peak)


def _largest_of_others(state: State, card: DeviceState) -> Holder | None:
    others = [Holder(pid, share.used) for pid, share in card.by_pid.items() if share.used and not of_run(state, pid)]
    if not others:
        return None
    largest = max(others, key=lambda holder: holder.used)
    process = state.processes.get(largest.pid)
    if process is None:
        return largest
    workload = process.seen.workload
    return Holder(largest.pid, largest.used, script_name(process), workload.short if workload else "")


class TwoReserveCard(DeviceFinding, frozen=True):
    """Two processes of one script fill a card; the ``first`` of them has growth off.

    ``script`` is the script's name, ``None`` if both processes are of this run. ``growth`` is that of the second
    process: off, or ``None`` if it is not known.
    """

    key = Key.OTHERS

    script: str | None
    first: Holder
    second: Holder
    growth: bool | None

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        apart = Action.USE_OTHER_GPU if self.script else Action.FEWER_ON_CARD
        return Action.GROWTH_ON, Action.SET_LIMIT, apart

    @property
    def said(self) -> Said:
        first, second = self.first, self.second
        reserved = (
            "Without growth each reserves all that is free when it starts, and the later one gets the rest."
            if self.growth is False
            else f"Growth is off in {first.pid}: it took what was free. Whether it is on in {second.pid} is not known."
        )
        return Said(
            f"{place_name(self.place)}: two processes of {self.script or 'this run'} fill the card, {first.pid} "
            f"({format_bytes(first.used)}) and {second.pid} ({format_bytes(second.used)}).",
            "Two TensorFlow processes share a card well only if each has growth or a limit: with growth a process "
            "takes what it needs, with a limit no more than the limit. A worker process (multiprocessing, a data "
            "loader, a second notebook) that imports TensorFlow and touches the GPU reserves memory like any other. "
            "Hide the GPU from it if it does not compute there.",
            GROWTH,
            reserved,
        )


@rule(180)
def two_reserve_everything(state: State) -> Iterator[TwoReserveCard]:
    """Find cards that two processes of one script share, where neither leaves memory to the other."""
    told = set()
    for device in run_devices(state):
        if device.growth is not False or device.asked_limit is not None or device.asynchronous or device.card is None:
            continue
        index = device.card.info.index
        found = None if index in told else next(_rivals(state, device, device.card), None)
        if found:
            told.add(index)
            yield found


def _rivals(state: State, device: RunDevice, card: DeviceState) -> Iterator[TwoReserveCard]:
    mine, whole, held = state.processes.get(device.pid), card.info.total, card.by_pid.get(device.pid)
    if mine is None or whole is None or held is None or held.used is None:
        return
    for share in card.by_pid.values():
        other = state.processes.get(share.pid)
        if share.pid == device.pid or other is None or share.used is None:
            continue
        same_run = bool(mine.hooked and other.hooked and mine.seen.run == other.seen.run)
        script, growth = _common_script(mine, other), _growth(other)
        if (same_run or script) and not growth and held.used + share.used >= whole * FULL_SHARE:
            yield TwoReserveCard(
                Place(card.info.index),
                script=None if same_run else script,
                first=Holder(device.pid, held.used),
                second=Holder(share.pid, share.used),
                growth=growth,
            )


def _growth(process: ProcessState) -> bool | None:
    """Return whether growth is on for a GPU of *process*; ``None`` where that is not known."""
    hooked = process.hooked
    growths = [effective.growth for name, effective in hooked.effective.items() if "GPU" in name] if hooked else []
    return None if not growths or None in growths else any(growths)


def _common_script(mine: ProcessState, other: ProcessState) -> str:
    """Return the script that both processes run, whatever its arguments; empty if they run different ones."""
    first, second = _script(mine.seen.command), _script(other.seen.command)
    if first == second:
        return _name(first)
    # It is not known which folder a relative path starts from.
    relative = not (PurePath(first).is_absolute() and PurePath(second).is_absolute())
    same_name = first.endswith(".py") and PurePath(first).name == PurePath(second).name
    return _name(first) if relative and same_name else ""


def script_name(process: ProcessState) -> str:
    """Return the name of what *process* runs: its script's file, or its module."""
    return _name(_script(process.seen.command))


def _name(script: str) -> str:
    return PurePath(script).name if script.endswith(".py") else script[:60]


def _script(command: list[str]) -> str:
    """Return the part of a command line that identifies the script: its file or module, without its arguments."""
    for at, word in enumerate(command[1:], 1):
        if word.endswith(".py"):
            return word
        if word == "-m":
            return " ".join(command[at : at + 2])
        if not word.startswith("-"):
            break
    return " ".join(command)


_NEARLY_ALL = 0.95


def _who_held(found: OthersHoldCard) -> str:
    held, largest = f"held {format_bytes(found.used)}", found.largest
    if largest is None:
        return f"other processes {held}"
    script = " in ".join(filter(None, (largest.script, largest.workload)))
    who = f"process {largest.pid}" + (f" ({script})" if script else "")
    if largest.used >= found.used * _NEARLY_ALL:
        return f"{who} {held}"
    return f"{who}, which has {format_bytes(largest.used)}, and others {held}"
