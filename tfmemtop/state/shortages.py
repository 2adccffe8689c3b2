"""Which allocations of the newest run failed, wait for room, or may have made it crash, each with its anatomy."""

from collections.abc import Iterator

import msgspec

from tfmemtop import events
from tfmemtop.events.machine import is_cpu, is_gpu, is_pinned
from tfmemtop.state.account import USUAL_CONTEXT
from tfmemtop.state.anatomy import LATER_S, Anatomy, anatomy_of, belongs, of_allocator
from tfmemtop.state.history import Trend
from tfmemtop.state.lookup import of_run, surroundings
from tfmemtop.state.model import RETRIED_S, WAIT_SEEN_S, Hooked, Pool, RunState, State, Surroundings


def anatomies(state: State) -> Iterator[Anatomy]:
    """Yield the newest failure of each process of the newest run."""
    for pid, process in state.processes.items():
        if process.hooked and process.hooked.failure and of_run(state, pid):
            failure = process.hooked.failure
            yield anatomy_of(state, pid, process.hooked, failure.around, failure.error.t, failure.error)


def trying(state: State) -> Iterator[Anatomy]:
    """Yield pools in which TensorFlow has found no room in the last 15 seconds, without an error so far.

    Once the run has ended, yield those in which it had waited for longer than it tries for one request: up to the
    end, or, if the run did not fail, at any time before.
    """
    run = state.run
    for pid, process in state.processes.items():
        hooked = process.hooked
        if run is None or not hooked or not of_run(state, pid):
            continue
        if hooked.ended and run.going and hooked.error is None:
            continue  # an error may be of what found no room, until the run's end shows it
        failed = hooked.failure.error.t if hooked.failure else float("-inf")
        for device in {**hooked.pools, **hooked.allocators}:
            at, scratch = _no_room_at(state, hooked, device)
            if at <= failed + LATER_S:
                continue
            pool = hooked.pools.get(device)
            since = None if pool is None or scratch else pool.short_since
            waited_s = 0.0 if since is None else at - since
            ago = (state.now if run.ended is None else run.ended) - at
            lately = ago < RETRIED_S
            if lately if run.going else waited_s >= RETRIED_S and (lately or not run.failed):
                around = _as_wait_began(pool, at) or hooked.at_end or surroundings(state, hooked)
                found = anatomy_of(state, pid, hooked, around, at, None, device, scratch=scratch)
                still = ago < WAIT_SEEN_S and not hooked.ended if run.going else lately
                yield msgspec.structs.replace(found, waited_s=waited_s, still=still)


def _no_room_at(state: State, hooked: Hooked, device: str) -> tuple[float, bool]:
    """Return the session second at which TensorFlow last found no room in a pool, and whether for scratch memory.

    There is a map of that moment, unless the request was for scratch memory: for that, TensorFlow does not wait. It
    only writes a line to the terminal. Without either, the second is far in the past.
    """
    pool = hooked.pools.get(device)
    waited = pool.exhausted.t if pool and pool.exhausted else float("-inf")
    spared = [line for line in state.run.complaints if line.harmless] if state.run else []
    mine = (line.at for line in spared if of_allocator(hooked, line.allocator) == device)
    at = max(mine, default=float("-inf"))
    return max(waited, at), at > waited


_FULL, _HALF, _WAITED_S = 0.9, 0.5, 8.0
"""A crash is put down to a pool that was full to the first share of its limit; or to the second, if the memory in use
had not changed for so many seconds, as while TensorFlow waits for room."""


def crashes(state: State, *, crashed: bool) -> Iterator[Anatomy]:
    """Yield the allocations that failed as the newest run ended badly, or one of its children, without an error.

    There is evidence for one: TensorFlow's own line that a pool ran out, or, if the run has *crashed*, a pool that was
    nearly full, or in which an allocation waited. TensorFlow may crash in place of an error.
    """
    run = state.run
    for pid, process in state.processes.items():
        hooked = process.hooked
        if run is None or hooked is None or not of_run(state, pid):
            continue
        child = pid != run.pid and hooked.lost is not None
        for device, reading in hooked.allocators.items():
            full, failed = crashed and _was_full(hooked, device, reading), failed_at(state, pid)
            ran_out = (crashed or run.failed or child) and _ran_out(run, hooked, device, failed)
            if not is_pinned(device) and (full or ran_out):
                around = hooked.at_end or surroundings(state, hooked)
                yield anatomy_of(state, pid, hooked, around, failed, None, device)


def on_full_cards(state: State) -> Iterator[Anatomy]:
    """Yield the GPUs of the newest run's processes that had nearly nothing free at their end, or as a wait until then
    began: these are ``still`` waiting.
    """
    for pid, process in state.processes.items():
        hooked = process.hooked
        if hooked is None or hooked.at_end is None or not of_run(state, pid):
            continue
        failed, ended = failed_at(state, pid), hooked.at_end
        begun = any(share.pid == pid for card in ended.cards.values() for share in card.processes)
        made: list[str | None] = [name for name in hooked.allocators if is_gpu(name)]
        for device in made or [None] * begun:
            pool = hooked.pools.get(device or "")
            for around, still in ((ended, False), (_as_wait_began(pool, failed), True)):
                found = anatomy_of(state, pid, hooked, around, failed, None, device) if around else None
                if found and found.card_free is not None and found.card_free < USUAL_CONTEXT:
                    yield msgspec.structs.replace(found, still=still)


def _as_wait_began(pool: Pool | None, t: float) -> Surroundings | None:
    """Return the readings as a wait for room until *t* began; ``None`` if there was no wait, or a longer one.

    TensorFlow looks at the card again only when its own pool gets memory back, and after ten seconds.
    """
    began = pool.short_since if pool else None
    return pool.short_among if pool and began is not None and belongs(began, t) else None


def failed_at(state: State, pid: int) -> float:
    """Return the time of the newest failure in process *pid*: of an error, else of the end of a child or of the run.

    A process may need some seconds to end after its error.
    """
    process, run = state.processes.get(pid), state.run
    if process and process.hooked and process.hooked.failure:
        return process.hooked.failure.error.t
    if process and process.hooked and process.hooked.error:
        return process.hooked.error.t
    if run is not None and process and process.hooked and process.hooked.lost is not None and pid != run.pid:
        return process.hooked.lost
    return run.ended if run is not None and run.ended is not None else state.now


def _ran_out(run: RunState, hooked: Hooked, device: str, failed: float) -> bool:
    mine = (one for one in run.complaints if not one.harmless and one.pid in (hooked.hello.pid, None))
    return any(of_allocator(hooked, one.allocator) == device for one in mine if belongs(one.at, failed))


def _was_full(hooked: Hooked, device: str, reading: events.Allocator) -> bool:
    if not is_cpu(device) or not reading.limit:
        return False
    highest = max(reading.pool or 0, reading.peak_pool or 0, reading.peak or 0, reading.in_use or 0, reading.high or 0)
    share = highest / reading.limit
    return share >= _FULL or (share >= _HALF and _still(hooked.trends.get(device)) >= _WAITED_S)


def _still(trend: Trend | None) -> float:
    if trend is None or not trend.short.windows:
        return 0.0
    last, since = trend.short.windows[-1].low, trend.end
    for window in reversed(trend.short.windows):
        if not window.low == window.high == last:
            break
        since = window.start
    return trend.end - since
