"""An allocation that failed: what was requested, and the state of the pool and the device at that time."""

import msgspec

from tfmemtop import events
from tfmemtop.events.machine import is_cpu, is_pinned
from tfmemtop.state.account import USUAL_CONTEXT
from tfmemtop.state.attribution import made_at
from tfmemtop.state.located import lies_in
from tfmemtop.state.lookup import LimitBy, cached_of, device_of, hooked_of, limit_by, of_run
from tfmemtop.state.model import RETRIED_S, Hooked, State, Surroundings
from tfmemtop.state.program import program
from tfmemtop.tensorflow_text import failed_node

LATER_S = 3.0
"""Seconds that the script's output and files take to arrive here."""

_ROUNDING = 256  # bytes, to which BFC rounds a request up
_SHORT = 40  # characters
_COUNTED_S = 2.0  # the time after a step within which it is surely counted


class Anatomy(msgspec.Struct, frozen=True):
    """An allocation on ``device`` (``None`` where that is not known) that failed at second ``t`` of the session.

    Sizes are in bytes, unknown ones ``None``.
    ``times`` is how many allocations of the process have failed. ``card_free``, ``card_total`` and ``others`` are the
    GPU's, or for the CPU pool the host's; ``others`` are the bytes of other processes, and ``largest_other`` is the one
    with most: its number and its bytes; ``other_program`` is its user, if that is another, and its program;
    ``of_run`` are the bytes of those of the same run.
    ``map_age_s`` and ``reading_age_s`` are the seconds by which the map and the reading are older than the failure.
    ``waited_s`` is for how long TensorFlow has waited for room, without an error, and ``still`` whether
    it did so to the end of the run, or does so now.
    ``line`` is the script's own, as ``train.py:12``. ``scratch`` if TensorFlow reports that it can do without this
    memory. Where ``operation`` calls a graph, ``node`` is the operation of the graph that asked, and ``node_line`` the
    line that made it, as far as they are known. ``code`` is the text of ``line``, which ``at_once`` threads ran.
    ``shares_card`` if the process has other logical devices on the same GPU.
    """

    pid: int
    t: float
    device: str | None
    times: int
    asked: int | None
    operation: str | None
    shape: list[int] | None
    dtype: str | None
    line: str | None
    scratch: bool
    message: str
    in_use: int | None
    pool: int | None
    largest_free: int | None
    limit: int | None
    limit_by: LimitBy
    card_total: int | None
    card_free: int | None
    others: int | None
    largest_other: tuple[int, int] | None
    of_run: int
    reading_age_s: float | None
    map_age_s: float | None
    node: str | None = None
    node_line: str | None = None
    code: str = ""
    other_program: str = ""
    waited_s: float = 0.0
    still: bool = False
    shares_card: bool = False
    at_once: int = 1

    @property
    def cached(self) -> int | None:
        return cached_of(self.pool, self.in_use)

    @property
    def in_graph(self) -> bool:
        """Whether an operation of a compiled function asked, as far as its name shows."""
        name = self.operation or ""
        return self.node is not None or name.startswith("__") or "/" in name

    @property
    def on_cpu(self) -> bool:
        return self.device is not None and is_cpu(self.device)

    @property
    def asynchronous(self) -> bool:
        """Whether the pool was CUDA's own, which has no size and no map."""
        return self.pool is None and self.in_use is not None and self.device is not None and not self.on_cpu

    @property
    def more_than(self) -> int | None:
        """The bytes that the request must have exceeded, as it did not fit; ``None`` if not known.

        BFC found no free chunk that is large enough, and could not take that much new memory, which it does
        within the limit and the free memory of the device.
        """
        if self.largest_free is None:
            return None
        room = 0 if self.limit is None or self.pool is None else self.limit - self.pool
        return max(self.largest_free, min(room, self.card_free or 0))


def anatomy_of(
    state: State,
    pid: int,
    hooked: Hooked,
    around: Surroundings,
    failed: float,
    error: events.OutOfMemory | None,
    device: str | None = None,
    *,
    scratch: bool = False,
) -> Anatomy:
    """Return the anatomy of what failed at second *failed* in process *pid*, with the readings *around* that time.

    Without an *error*, it is of *device*. With *scratch*, it may be a request for scratch memory.
    """
    complaint = _request(state, pid, hooked, device, failed, scratch, error.requested if error else None)
    if error is not None:
        named = error.device or of_allocator(hooked, complaint.allocator if complaint else None)
        device = _pool_of(hooked, named) if named else _only(hooked, failed)
    reading = around.readings.get(device) if device else None
    pool = hooked.pools.get(device) if device else None
    moment = pool.exhausted if pool else None
    if moment is not None and not belongs(moment.t, failed):
        moment = None
    shown = moment or (around.maps.get(device) if device else None)
    exact = moment is not None
    size = shown.pool if shown and exact else reading.pool if reading else None
    in_use = shown.in_use if shown and exact else reading.in_use if reading else None
    limit = _limit(hooked, device, reading)
    total, free, others = _card(state, pid, device, around)
    known = [(used, number) for number, used in others or () if used is not None]
    needless = complaint is not None and complaint.harmless  # for scratch memory TensorFlow does not wait
    waiting, stood = (None, None) if needless else (waited(hooked, failed), _stood(hooked, failed))
    operations = (error and error.operation, complaint and complaint.operation, waiting and waiting.operation)
    node = _node(error, complaint)
    made = made_at(hooked, node) if node else None
    largest = shown.largest_free if shown and not shown.is_missing else None
    if not exact and largest is not None and largest > (cached_of(size, in_use) or 0):
        largest = None  # of another moment than the reading
    return Anatomy(
        pid=pid,
        t=failed,
        device=device,
        times=len(hooked.out_of_memory),
        # The size of the allocator's own request, if its line was found; else the tensor's bytes.
        asked=complaint.size if complaint else error.requested if error else None,
        operation=next((operation for operation in operations if operation), None),
        shape=error.shape if error else None,
        dtype=error.dtype if error else None,
        line=f"{stood.file}:{stood.line}" if stood and stood.file else None,
        scratch=needless,
        message=error.message if error else "",
        in_use=in_use,
        pool=size,
        largest_free=largest,
        limit=limit,
        limit_by=limit_by(state, hooked, device, limit) if device else LimitBy.TENSORFLOW,
        card_total=total,
        card_free=free,
        others=None if others is None or len(known) < len(others) else sum(used for used, _ in known),
        largest_other=max(known)[::-1] if known else None,
        of_run=sum(used for used, number in known if of_run(state, number)),
        other_program=_about(state, max(known)[1]) if known else "",
        reading_age_s=0.0 if exact else max(0.0, failed - reading.t) if reading else None,
        map_age_s=None if shown is None else 0.0 if exact else max(0.0, failed - shown.t),
        node=node,
        node_line=f"{made.file}:{made.line}" if made and made.file else None,
        code=stood.code if stood else "",
        shares_card=device is not None and _shares_card(state, pid, hooked, device),
        at_once=waiting.at_once if waiting and waiting.file else 1,
    )


def _shares_card(state: State, pid: int, hooked: Hooked, device: str) -> bool:
    card = device_of(state, pid, device)
    return card is not None and any(device_of(state, pid, one) is card for one in hooked.effective if one != device)


def _node(error: events.OutOfMemory | None, complaint: events.AllocatorLine | None) -> str | None:
    """Return the operation of a graph for which there was no room, by its whole name where TensorFlow's line has it."""
    node, whole = failed_node(error.message) if error else None, complaint.operation if complaint else None
    return whole if node and whole and whole.endswith(f"/{node}") else node


def waited(hooked: Hooked, failed: float) -> events.Waiting | None:
    """Return where the script stood while it waited for room, before an allocation failed at session second *failed*.

    Operations of one function may wait one after another, for 10 s each. No step is counted meanwhile, so an earlier
    wait counts if no step has been counted since.
    """
    waiting = hooked.waiting
    if waiting is None or belongs(waiting.t, failed):
        return waiting
    course = hooked.steps.busiest
    still = course is not None and course.before(failed).t <= waiting.t + _COUNTED_S
    return waiting if still and waiting.t <= failed else None


def _stood(hooked: Hooked, failed: float) -> events.Waiting | events.ScriptError | None:
    """Return what has the line that waited: after a wait long before, the script's error, if it ended at the same line.

    When that wait began says nothing of the failure: a loop comes to its lines again and again.
    """
    last, error = hooked.waiting, hooked.error
    same = last and error and (error.file, error.line) == (last.file, last.line)
    return waited(hooked, failed) or (error if same else None)


def belongs(t: float, failed: float) -> bool:
    """Return whether what happened at second *t* of the session may be of an allocation that failed at *failed*."""
    return failed - RETRIED_S <= t <= failed + LATER_S


def _request(
    state: State,
    pid: int,
    hooked: Hooked,
    device: str | None,
    failed: float,
    scratch: bool,
    tensor: int | None,
) -> events.AllocatorLine | None:
    """Return TensorFlow's newest line about a request that failed at *failed*; with *scratch*, any kind of request.

    Where the bytes of the *tensor* are known, it is a line about that many: other threads' requests may fail as well.
    """
    near = [c for c in reversed(state.run.complaints) if belongs(c.at, failed)] if state.run else []
    near = [c for c in near if tensor is None or tensor <= c.size < tensor + _ROUNDING]
    return next((c for c in near if (scratch or not c.harmless) and _may_be_of(pid, hooked, device, c)), None)


def _may_be_of(pid: int, hooked: Hooked, device: str | None, complaint: events.AllocatorLine) -> bool:
    """Return whether *complaint* may be about *device*: its process, its allocator, or *device* may not be known."""
    ours = complaint.pid in (pid, None)
    return ours and (device is None or of_allocator(hooked, complaint.allocator) in (device, None))


def of_allocator(hooked: Hooked, name: str | None) -> str | None:
    """Return the logical device of the allocator that TensorFlow calls *name*; ``None`` if it is not known."""
    return next((device for device, reading in hooked.allocators.items() if name and reading.allocator == name), None)


def _pool_of(hooked: Hooked, device: str) -> str:
    """Return the device by whose name the pool of *device* is read: all logical CPUs share one pool."""
    known = (each for each in hooked.allocators if lies_in(device, each))
    return device if device in hooked.allocators else next(known, device)


def _only(hooked: Hooked, failed: float) -> str | None:
    """Return the only pool that can have failed: the one that was copied as it ran out, or the only pool."""
    written = [d for d, pool in hooked.pools.items() if pool.exhausted and belongs(pool.exhausted.t, failed)]
    known = written or [device for device in hooked.allocators if not is_pinned(device)]
    return known[0] if len(known) == 1 else None


def _limit(hooked: Hooked, device: str | None, reading: events.Allocator | None) -> int | None:
    effective = hooked.effective.get(device) if device else None
    return reading.limit if reading and reading.limit is not None else effective.limit if effective else None


def _card(
    state: State, pid: int, device: str | None, around: Surroundings
) -> tuple[int | None, int | None, list[tuple[int, int | None]] | None]:
    """Return total and free bytes of the memory that the pool takes from, and the bytes of each other process in it.

    Where CUDA found no memory to begin, TensorFlow has made no device. Then it is a card that has too little for a
    context, if that is clear: there is only one, or all cards are such. Of several, it is the emptiest.
    """
    if device is not None and is_cpu(device):
        total = state.session.host_memory if state.session else None
        return total, None if total is None or around.host_used is None else max(0, total - around.host_used), None
    free = {index: reading.free for index, reading in around.cards.items() if reading.free is not None}
    full = [index for index, size in free.items() if size < short_of(state.devices[index].info.total)]
    clear = len(full) == 1 or len(full) == len(state.devices) > 0
    place = device_of(state, pid, device) if device else None
    hooked = hooked_of(state, pid)
    made = hooked is not None and device in hooked.allocators
    if place is None and not made and clear:
        place = state.devices[max(full, key=lambda index: free[index])]
    reading = around.cards.get(place.info.index) if place else None
    if place is None or reading is None:
        return (place.info.total if place else None), None, None
    others = [(share.pid, share.used) for share in reading.processes if share.pid != pid]
    return place.info.total, reading.free, None if reading.processes_missing else others


def short_of(total: int | None) -> int:
    """Return how many bytes of a card have to be free, by a reading once a second, so that CUDA can begin there."""
    return max(USUAL_CONTEXT, (total or 0) // 100)


def _about(state: State, pid: int) -> str:
    """Return ``user ada, train.py``: whose process *pid* is, if not this user's, and its program; or empty."""
    process = state.processes.get(pid)
    if process is None:
        return ""
    words, user = program(process.seen.command), process.seen.user
    name = " ".join(words[: 2 if words[:1] == ["-m"] else 1])
    own = state.session is not None and state.session.user == user
    return ", ".join(filter(None, ("" if own else f"user {user}", name if len(name) <= _SHORT else "")))
