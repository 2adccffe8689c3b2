"""Makes the events about a process that is read from outside."""

from collections.abc import Mapping, Sequence

from tfmemtop.agent.layouts import Figures
from tfmemtop.engine.sources.outside.look import About
from tfmemtop.engine.sources.processes import executable, find, read_command, text_of
from tfmemtop.events import Allocator, Device, Outside


def outside_event(pid: int, about: About, t: float) -> Outside:
    """Return the event that reports how far the reading of process *pid* has come."""
    process = find(pid)
    return Outside(
        t=t,
        pid=pid,
        state=about.state,
        detail=about.detail,
        ppid=process.ppid if process else 0,
        argv=read_command(pid),
        python=about.python,
        executable=_executable(pid),
        tensorflow=about.tensorflow,
        tensorflow_path=text_of(about.folder) if about.folder else None,
        damage=about.damage,
    )


def allocator_event(pid: int, device: str, name: str, figures: Figures, t: float, high: int | None = None) -> Allocator:
    """Return the event of one reading of one pool."""
    return Allocator(
        t=t,
        pid=pid,
        device=device,
        allocator=name,
        in_use=figures.in_use,
        peak=figures.peak,
        pool=figures.pool,
        limit=figures.limit,
        peak_pool=figures.peak_pool,
        allocations=figures.allocations,
        high=high,
    )


def _executable(pid: int) -> str:
    """Return the path of the program of process *pid*; empty where it cannot be read."""
    try:
        return text_of(executable(pid))
    except OSError:
        return ""


_ORDER, _VISIBLE = "CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES"


def cards_of(count: int, cards: Sequence[Device], held: Sequence[int], environment: Mapping[str, str]) -> list[str]:
    """Return the UUIDs of the cards of a process's *count* GPU allocators, in the allocators' order.

    The result is empty where the cards cannot be determined. *cards* are all cards, in the driver's order. *held* are
    the numbers of the cards on which the driver lists the process. *environment* is that with which it was started.
    """
    uuids = {card.index: card.uuid for card in cards}
    on = [index for index in held if index in uuids]
    if len(on) == 1:
        return [uuids[on[0]]] * count  # several logical devices on one card
    visible = _visible(cards, environment)
    # Several logical devices on one of several cards look the same as one device on each card.
    return [card.uuid for card in visible] if count == len(visible) and (not on or len(on) == count) else []


def _visible(cards: Sequence[Device], environment: Mapping[str, str]) -> list[Device]:
    """Return the cards that CUDA shows the process, in CUDA's order; empty where that order is not known."""
    asked = environment.get(_VISIBLE)
    if asked is None:
        return list(cards) if _in_driver_order(cards, environment) else []
    found: list[Device] = []
    for word in map(str.strip, asked.split(",")):
        if word.isdecimal() and _in_driver_order(cards, environment):
            fitting = [card for card in cards if card.index == int(word)]
        else:
            fitting = [card for card in cards if word and card.uuid.startswith(word)]
        if len(fitting) != 1 or fitting[0] in found:
            break  # CUDA shows none from there on
        found += fitting
    return found


def _in_driver_order(cards: Sequence[Device], environment: Mapping[str, str]) -> bool:
    """Return whether CUDA numbers the cards as the driver does: by their place on the bus, or because all are alike."""
    return environment.get(_ORDER) == "PCI_BUS_ID" or len({card.name for card in cards}) <= 1
