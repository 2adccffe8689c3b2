"""A trace in the form that the replay takes. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from tfmemtop.events import Trace
from tfmemtop.events.allocations import Call, TraceAllocations, unpack
from tfmemtop.events.damage import Damage, Damaged


@dataclass(frozen=True, slots=True)
class Course:
    """All events of a trace, and facts about it.

    Each of ``events`` is a pair. For an allocation: the thread times two, and the requested bytes. For a free: the
    thread times two plus one, and the number of the allocation that is freed. ``steps`` are the numbers of the events
    at which a step began. ``operations`` contains for each allocation the place of its name in ``names``, or -1 if it
    has none. ``scratch`` are the numbers of allocations that TensorFlow can do without. ``calls`` are calls of
    functions and sessions; ``runs`` contains for each allocation the number of the call in whose run it is made, or -1.

    These are sums of requested bytes: ``requested`` is the most that was in use at once; ``kept`` is what was in use
    when the last step began, ``None`` without steps; ``before`` is what was already in use when the trace began.
    """

    pid: int
    device: str
    events: Sequence[tuple[int, int]]
    steps: Sequence[int]
    names: Sequence[str]
    operations: Sequence[int]
    scratch: Sequence[int]
    requested: int
    kept: int | None
    lost: int
    whole: bool
    before: int = 0
    calls: Sequence[Call] = ()
    runs: Sequence[int] = ()

    @property
    def allocations(self) -> int:
        """The number of events that are allocations."""
        return len(self.operations)

    def operation_of(self, event: int) -> str:
        """Return the operation of the allocation at *event*, or of the one that it frees; empty if it has no name."""
        who, value = self.events[event]
        number = value if who & 1 else sum(not who & 1 for who, _ in self.events[:event])
        place = self.operations[number]
        return self.names[place] if 0 <= place < len(self.names) else ""


def is_complete(parts: Sequence[Trace]) -> bool:
    """Return whether *parts* are all parts of one trace, in order."""
    return bool(parts) and parts[-1].last and [part.part for part in parts] == list(range(len(parts)))


def course_of(parts: Sequence[Trace]) -> Course:
    """Return the trace whose *parts* these are.

    Raises:
        Damaged: *parts* are not all parts of one trace, or one of them is damaged.
    """
    if not is_complete(parts):
        raise Damaged(Damage.INCOMPLETE)
    events: list[tuple[int, int]] = []
    operations: list[int] = []
    names: list[str] = []
    scratch: list[int] = []
    threads: dict[int, int] = {}
    sizes: list[int] = []
    calls: list[Call] = []
    runs: list[int] = []
    in_use = most = 0
    steps = {step for part in parts for step in part.steps}
    kept: int | None = None

    def thread_of(number: int) -> int:
        return threads.setdefault(number, len(threads))

    for part in parts:
        found = unpack(part.packed, TraceAllocations)
        names += found.names
        scratch += found.scratch
        operations += found.operations
        runs += found.runs
        calls += (Call(thread_of(call.thread), call.event) for call in found.calls)
        for who, value in found.events:
            if len(events) in steps:
                kept = in_use
            events.append((thread_of(who >> 1) << 1 | who & 1, value))
            if not who & 1:
                sizes.append(value)
                in_use += value
                most = max(most, in_use)
            elif value < len(sizes):
                in_use -= sizes[value]
            else:
                raise Damaged(Damage.INCOMPLETE)
    if not len(operations) == len(runs) == len(sizes):
        raise Damaged(Damage.INCOMPLETE)
    if max(runs, default=-1) >= len(calls) or any(call.event > len(events) for call in calls):
        raise Damaged(Damage.INCOMPLETE)
    return Course(
        pid=parts[0].pid,
        device=parts[0].device,
        events=events,
        steps=sorted(step for step in steps if step < len(events)),
        names=names,
        operations=operations,
        scratch=[number for number in scratch if number < len(operations)],
        requested=most,
        kept=kept,
        lost=sum(part.lost for part in parts),
        whole=all(part.whole for part in parts),
        before=sum(sizes[: parts[0].before]),
        calls=calls,
        runs=runs,
    )
