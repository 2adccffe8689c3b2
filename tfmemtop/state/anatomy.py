"""An allocation that failed: what was asked for, and how things stood when it did."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tfmemtop import events
from tfmemtop.events.device_names import is_cpu, is_pinned
from tfmemtop.state.holder_choice import told
from tfmemtop.state.holders import By, Holder, Kind, standing
from tfmemtop.state.likely import likely
from tfmemtop.state.lookup import LimitBy, device_of, limit_by, of_run, surroundings
from tfmemtop.state.model import Complaint, Hooked, State, Surroundings
from tfmemtop.state.step_course import unpacked
from tfmemtop.state.trend import Trend

RETRIED_S = 15.0
"""TensorFlow tries for 10 s before it gives up; what it wrote down and said on the way belongs to the failure."""

_HOLDERS = 3  # are told
_UNTOLD = 0.5  # of what is in use; where more than that has no name, a window tells too little
_LATER_S = 3.0  # that the script's output and files take to get here
_COUNTED_S = 2.0  # after a step, in which it is surely counted


@dataclass(frozen=True, slots=True)
class Held:
    """Who held most of ``total`` bytes, the largest first, ``age_s`` before the failure.

    It is of the peak of a window, or, of one that was opened while an allocation waited for room, of its end. Where
    little is known of that one, it is of a step before, and ``nameless`` tells how many of how many bytes in use had no
    name while the allocation waited. With a ``scale``, some holders are likely by a step before, whose allocations were
    made again, so many times as large.
    """

    holders: tuple[Holder, ...]
    total: int
    age_s: float
    waiting: bool
    nameless: tuple[int, int] | None = None
    scale: float | None = None


@dataclass(frozen=True, slots=True)
class Anatomy:
    """A failed allocation on ``device`` (``None`` where that is not known). Sizes in bytes, unknown ones ``None``.

    ``card_free``, ``card_total`` and ``others`` are the GPU's, or for the CPU pool the host's.
    ``map_age_s`` and ``reading_age_s`` say how much older than the failure those figures are.
    ``line`` is the script's own, as ``train.py:12``. ``scratch`` if TensorFlow says it can do without.
    """

    pid: int
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
    reading_age_s: float | None
    map_age_s: float | None
    held: Held | None = None

    @property
    def cached(self) -> int | None:
        return None if self.pool is None or self.in_use is None else max(0, self.pool - self.in_use)

    @property
    def on_cpu(self) -> bool:
        return self.device is not None and is_cpu(self.device)

    @property
    def asynchronous(self) -> bool:
        """Whether the pool was CUDA's own, which has no size and no map."""
        return self.pool is None and self.in_use is not None and self.device is not None and not self.on_cpu

    @property
    def more_than(self) -> int | None:
        """What must have been asked for at the least, for it not to fit.

        BFC neither found as large a free chunk nor could take as much anew, as it would have within the
        limit and what is free.
        """
        if self.largest_free is None:
            return None
        room = 0 if self.limit is None or self.pool is None else self.limit - self.pool
        return max(self.largest_free, min(room, self.card_free or 0))


def anatomies(state: State) -> Iterator[Anatomy]:
    """The newest failure of each process of the newest run."""
    for pid, process in state.processes.items():
        if process.hooked and process.hooked.failure and of_run(state, pid):
            failure = process.hooked.failure
            yield _anatomy(state, pid, process.hooked, failure.around, failure.error.t, failure.error)


def trying(state: State) -> Iterator[Anatomy]:
    """Pools for which TensorFlow has found no room in the last seconds, though no error has come of it so far."""
    for pid, process in state.processes.items():
        hooked = process.hooked
        if not hooked or hooked.ended or not of_run(state, pid):
            continue
        failed = hooked.failure.error.t if hooked.failure else float("-inf")
        for device in {**hooked.pools, **hooked.allocators}:
            at = _no_room_at(state, hooked, device)
            if at is not None and at > failed + _LATER_S and state.now - at < RETRIED_S:
                yield _anatomy(state, pid, hooked, surroundings(state, hooked), at, None, device)


def _no_room_at(state: State, hooked: Hooked, device: str) -> float | None:
    """When TensorFlow last found no room in a pool.

    There is a map of that moment, unless it was scratch memory: for that, TensorFlow does not wait. It only writes a
    line to the terminal.
    """
    pool = hooked.pools.get(device)
    times = [pool.exhausted.t] if pool and pool.exhausted else []
    scratch = [complaint for complaint in state.run.complaints if complaint.harmless] if state.run else []
    times += [complaint.t for complaint in scratch if _of_allocator(hooked, complaint.allocator) == device]
    return max(times, default=None)


def _anatomy(
    state: State,
    pid: int,
    hooked: Hooked,
    around: Surroundings,
    failed: float,
    error: events.OutOfMemory | None,
    device: str | None = None,
) -> Anatomy:
    run = state.run
    near = [c for c in reversed(run.complaints) if _belongs(c.t, failed)] if run else []
    complaint = next((c for c in near if not (error and c.harmless) and _may_be_of(hooked, device, c)), None)
    if error is not None:
        named = error.device or _of_allocator(hooked, complaint.allocator if complaint else None)
        device = named or _only(hooked, failed)
    reading = around.readings.get(device) if device else None
    pool = hooked.pools.get(device) if device else None
    moment = pool.exhausted if pool else None
    if moment is not None and not _belongs(moment.t, failed):
        moment = None
    shown = moment or (around.maps.get(device) if device else None)
    exact = moment is not None
    size = shown.pool if shown and exact else reading.pool if reading else None
    in_use = shown.in_use if shown and exact else reading.in_use if reading else None
    limit = _limit(hooked, device, reading)
    total, free, others = _card(state, pid, device, around)
    waiting = waited(hooked, failed)
    operations = (error and error.operation, complaint and complaint.operation, waiting and waiting.operation)
    found = Anatomy(
        pid=pid,
        device=device,
        times=len(hooked.out_of_memory),
        # What the allocator itself was asked for, where its line is there; else the tensor's bytes.
        asked=complaint.size if complaint else error.requested if error else None,
        operation=next((operation for operation in operations if operation), None),
        shape=error.shape if error else None,
        dtype=error.dtype if error else None,
        line=_line(waiting),
        scratch=complaint is not None and complaint.harmless,
        message=error.message if error else "",
        in_use=in_use,
        pool=size,
        largest_free=shown.largest_free if shown and not shown.is_missing else None,
        limit=limit,
        limit_by=limit_by(state, hooked, device, limit) if device else LimitBy.TENSORFLOW,
        card_total=total,
        card_free=free,
        others=others,
        reading_age_s=0.0 if exact else max(0.0, failed - reading.t) if reading else None,
        map_age_s=None if shown is None else 0.0 if exact else max(0.0, failed - shown.t),
        held=_held(hooked, device, failed) if device else None,
    )
    return found if waiting is None else _with_output(found, waiting)


def _with_output(a: Anatomy, waiting: events.Waiting) -> Anatomy:
    """With what the operation that waits has for its output, where nobody has said yet what was asked for.

    If that had fitted, it is something else that waits.
    """
    size = waiting.requested
    if size is None or a.scratch or a.operation != waiting.operation or (a.asked is not None and a.asked < size):
        return a
    if a.asked is None and a.more_than is not None and size <= a.more_than:
        return a
    shape, dtype = (waiting.shape, waiting.dtype) if a.shape is None else (a.shape, a.dtype)
    return replace(a, asked=size if a.asked is None else a.asked, shape=shape, dtype=dtype)


def _held(hooked: Hooked, device: str, failed: float) -> Held | None:
    """Who held most by the newest window until the failure that tells enough."""
    windows = hooked.windows.get(device)
    known = [one for one in told(windows) if one.began <= failed + _LATER_S] if windows else []
    if not known:
        return None
    window = known[-1]
    waiting = window.opened is events.Opened.WAITING
    end = unpacked(window).events - 1
    found = standing(window, hooked, By.LAYER, end if waiting else None)
    nameless = scale = None
    steps = [one for one in known if one.steps]
    if waiting and steps and found.without_name > _UNTOLD * found.total:
        # Most was allocated since the window before, in a step that is another one than those that were recorded.
        nameless, window, waiting = (found.without_name, found.total), steps[-1], False
        found = standing(window, hooked, By.LAYER)
    named = [holder for holder in found.holders if holder.kind is not Kind.BEFORE][:_HOLDERS]
    if any(holder.likely for holder in named) and (guess := likely(window, hooked)):
        scale = float(guess.scale)
    return Held(tuple(named), found.total, max(0.0, failed - window.ended), waiting, nameless, scale)


def waited(hooked: Hooked, failed: float) -> events.Waiting | None:
    """Where the script stood while it waited for room, until an allocation *failed* at that time.

    Operations of one function may wait one after another, for 10 s each. No step is counted meanwhile.
    """
    waiting = hooked.waiting
    if waiting is None or _belongs(waiting.t, failed):
        return waiting
    course = hooked.steps.busiest
    still = course is not None and course.before(failed).t <= waiting.t + _COUNTED_S
    return waiting if still and waiting.t <= failed else None


def _belongs(t: float, failed: float) -> bool:
    return failed - RETRIED_S <= t <= failed + _LATER_S


def _may_be_of(hooked: Hooked, device: str | None, complaint: Complaint) -> bool:
    """Whether *complaint* is of *device*, where that is known already."""
    return device is None or _of_allocator(hooked, complaint.allocator) in (device, None)


def _of_allocator(hooked: Hooked, name: str | None) -> str | None:
    return next((device for device, reading in hooked.allocators.items() if name and reading.allocator == name), None)


def _only(hooked: Hooked, failed: float) -> str | None:
    """The one pool that can be meant: the one that TensorFlow wrote down, or the only one there is."""
    written = [d for d, pool in hooked.pools.items() if pool.exhausted and _belongs(pool.exhausted.t, failed)]
    known = written or [device for device in hooked.allocators if not is_pinned(device)]
    return known[0] if len(known) == 1 else None


def _limit(hooked: Hooked, device: str | None, reading: events.Allocator | None) -> int | None:
    effective = hooked.effective.get(device) if device else None
    return reading.limit if reading and reading.limit is not None else effective.limit if effective else None


def _card(
    state: State, pid: int, device: str | None, around: Surroundings
) -> tuple[int | None, int | None, int | None]:
    """Total and free bytes of what the pool takes from, and what processes other than *pid* hold of it."""
    if device is None:
        return None, None, None
    if is_cpu(device):
        total = state.session.host_memory if state.session else None
        return total, None if total is None or around.host_used is None else max(0, total - around.host_used), None
    card = device_of(state, pid, device)
    reading = around.cards.get(card.info.index) if card else None
    if card is None or reading is None:
        return (card.info.total if card else None), None, None
    shares = [share.used for share in reading.processes if share.pid != pid]
    if reading.processes_missing or None in shares:
        return card.info.total, reading.free, None
    return card.info.total, reading.free, sum(used for used in shares if used is not None)


@dataclass(frozen=True, slots=True)
class Closeness:
    """How close the CPU pool of a process came to its limit: bytes.

    ``still_s`` is how long its use had not changed at the end. ``line`` is where the script stood when it waited for
    room at the end; ``None`` if it is not known to have. ``held`` is who held most of the pool then.
    """

    pid: int
    device: str
    limit: int
    pool: int | None
    highest: int
    still_s: float
    line: str | None
    held: Held | None = None

    @property
    def share(self) -> float:
        """Of the limit, at most."""
        return max(self.pool or 0, self.highest) / self.limit


def closest_to_limit(state: State) -> Closeness | None:
    """The CPU pool of the newest run that came closest to its limit; ``None`` if there is none with a limit."""
    if state.run is None:
        return None
    end = state.now if state.run.ended is None else state.run.ended
    found = [
        Closeness(
            pid=pid,
            device=device,
            limit=reading.limit,
            pool=None if reading.pool is None else max(reading.pool, reading.peak_pool or 0),
            highest=max(reading.peak or 0, reading.in_use or 0, reading.high or 0),
            still_s=_still(process.hooked.trends.get(device)),
            line=_stood_at(process.hooked, end),
            held=_held(process.hooked, device, end),
        )
        for pid, process in state.processes.items()
        if process.hooked and of_run(state, pid)
        for device, reading in process.hooked.allocators.items()
        if is_cpu(device) and reading.limit
    ]
    return max(found, key=lambda each: each.share, default=None)


def _stood_at(hooked: Hooked, end: float) -> str | None:
    return _line(waited(hooked, end))


def _line(waiting: events.Waiting | None) -> str | None:
    return f"{waiting.file}:{waiting.line}" if waiting and waiting.file else None


def _still(trend: Trend | None) -> float:
    if trend is None or not trend.short:
        return 0.0
    last, since = trend.short[-1].low, trend.end
    for window in reversed(trend.short):
        if not window.low == window.high == last:
            break
        since = window.start
    return trend.end - since
