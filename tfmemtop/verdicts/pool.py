"""How much TensorFlow's pool holds, and for what."""

from collections.abc import Iterator

from tfmemtop.state import State
from tfmemtop.state.account import USUAL_CONTEXT
from tfmemtop.units import format_bytes
from tfmemtop.verdicts.finding import Finding
from tfmemtop.verdicts.limits import fitting_limit
from tfmemtop.verdicts.look import BEHIND_THE_IMPORT, GROWTH_CODE, MIB, Use, uses

WHOLE_CARD = 0.75
"""Share of a card from which on a pool reserved at once counts as the whole card; TensorFlow takes 0.93 to 0.99."""

WORTH_TELLING = 512 * MIB
"""Less than this idle in a pool is not worth a sentence on cards of today."""

IDLE_SHARE = 0.4
UNNEEDED_SHARE = 0.3
"""Share of the pool. A pool that doubled just before it was enough is at worst half empty; a third is common."""

SETTLED_S = 5.0
"""A pool that has grown a moment ago may yet be filled."""

FRAGMENTED = 0.5
AT_ITS_LIMIT = 0.95
MAP_TOO_OLD_S = 15.0
"""Maps are read while somebody looks, or a recording is made."""


def whole_card_reserved(state: State) -> Iterator[Finding]:
    """Growth is off and no limit set: TensorFlow has taken the card at once."""
    for use in uses(state):
        if use.growth is not False or use.asynchronous or use.asked_limit is not None or use.card is None:
            continue
        whole, held = use.card.info.total, _held(use)
        if not whole or held is None or held < whole * WHOLE_CARD or use.reading is None:
            continue
        in_use, peak = use.reading.in_use, use.peak
        ended = use.hooked.ended
        text = (
            f"{use.place}: growth is off, so TensorFlow took {format_bytes(held)} of the card's "
            f"{format_bytes(whole)} at once; "
        )
        if in_use is None or peak is None:
            text += "how much of it is in use is not known."
        else:
            text += f"{format_bytes(in_use)} of it {'was in use at the end' if ended else 'is in use now'}, "
            text += f"{format_bytes(peak)} at the peak."
        mostly_idle = peak is not None and peak < held / 2
        yield Finding(
            "warning" if mostly_idle else "info",
            text,
            "[G] growth on takes what is needed only; [L] sets a limit",
            "Without growth and without a limit TensorFlow's pool is as large as what is free on the card when it "
            "starts, less a small reserve, whatever the script needs. nvidia-smi then shows a full card; it says "
            "nothing of how full the pool is. It costs nothing while nobody else needs the card. With growth the "
            "pool starts small and grows, and gives nothing back before the process ends or an allocation fails.",
            GROWTH_CODE,
            "whole-card",
            use.place,
        )


def _held(use: Use) -> int | None:
    """The pool's bytes; without the probe what the process holds beside a context."""
    if use.reading and use.reading.pool is not None:
        return use.reading.pool
    share = use.card.by_pid.get(use.pid) if use.card else None
    return max(0, share.used - USUAL_CONTEXT) if share and share.used is not None else None


def cached_but_idle(state: State) -> Iterator[Finding]:
    """Much of a growing pool was in use once, and has not been for a while."""
    for use in uses(state):
        reading, trend = use.reading, use.trend
        if not use.growth or use.asynchronous or reading is None or trend is None:
            continue
        peak = use.peak
        if reading.pool is None or peak is None or not trend.long:
            continue
        # The longer it runs, the longer its phases: validation between epochs is no idle memory.
        span_s = min(60.0, max(5.0, (trend.end - trend.long[0].start) / 4))
        recent = trend.highest(span_s)
        if recent is None:
            continue
        idle = reading.pool - recent
        if idle < max(WORTH_TELLING, reading.pool * IDLE_SHARE) or peak - recent < idle / 2:
            continue
        are, keeps = "are cached but idle", "keeps them until the process ends"
        if use.hooked.ended:
            are, keeps = "were cached but idle at the end", "kept them until the process ended"
        yield Finding(
            "info",
            f"{use.place}: {format_bytes(idle)} of the pool's {format_bytes(reading.pool)} {are}, in use by nobody for "
            f"{span_s:.0f} s; TensorFlow {keeps}.",
            "run what needs much only once in a process of its own",
            f"The script had {format_bytes(peak)} in use at its peak, at most {format_bytes(recent)} lately. "
            "A tensor that is deleted gives its memory back to the pool, not to the card: the next tensors reuse it at "
            "once, other processes cannot have it. Growth makes the pool grow as needed; it never makes it shrink. "
            "Neither del, gc.collect nor tf.keras.backend.clear_session changes that; the end of the process does. A "
            "later phase, such as the next validation, may need the memory again: a limit below the peak would end "
            "that one with an out-of-memory error.",
            (
                "import multiprocessing",
                "",
                "# in place of prepare(): all its memory goes back when the process ends",
                'phase = multiprocessing.get_context("spawn").Process(target=prepare)',
                "phase.start()",
                "phase.join()",
            ),
            "cached-idle",
            use.place,
        )


def grown_beyond_need(state: State) -> Iterator[Finding]:
    """A growing pool holds much that was never in use at one time."""
    for use in uses(state):
        reading = use.reading
        peak = use.peak
        if not use.growth or use.asynchronous or reading is None or reading.pool is None or peak is None:
            continue
        surplus = reading.pool - peak
        if surplus < max(WORTH_TELLING, reading.pool * UNNEEDED_SHARE):
            continue
        pool = use.hooked.pools.get(use.name)
        growth = next((g for g in reversed(pool.growths) if g.after > g.before), None) if pool else None
        if growth and reading.t - growth.at < SETTLED_S:
            continue
        text = (
            f"{use.place}: the pool {'held' if use.hooked.ended else 'holds'} {format_bytes(reading.pool)}, "
            f"{format_bytes(surplus)} more than was ever in use at once"
        )
        step = growth.after - growth.before if growth else 0
        if growth and step >= surplus:
            text += f": it grows by pieces that double, and the last one was {format_bytes(step)}."
        else:
            text += ", which its growing by pieces that double may explain."
        yield Finding(
            "info",
            text,
            "[L] a limit a tenth above the peak keeps it smaller",
            "BFC, TensorFlow's allocator, takes memory from CUDA in regions, each twice the one before and at least as "
            "large as what was asked for. So the pool may come to nearly twice the need; a large tensor that fits into "
            "no free piece adds a region of its own. A limit cuts the last doubling short.",
            _limit_code(peak),
            "grown-beyond-need",
            use.place,
        )


def _limit_code(peak: int) -> tuple[str, ...]:
    mib = fitting_limit(peak) // MIB
    return (
        "import tensorflow as tf",
        BEHIND_THE_IMPORT,
        'for gpu in tf.config.list_physical_devices("GPU"):',
        f"    limit = tf.config.LogicalDeviceConfiguration(memory_limit={mib})  # MiB: the peak and a tenth",
        "    tf.config.set_logical_device_configuration(gpu, [limit])",
    )


def fragmented(state: State) -> Iterator[Finding]:
    """The pool cannot grow, and its free memory lies in pieces smaller than what is asked for."""
    for use in [*uses(state), *uses(state, "CPU")]:
        pool = use.hooked.pools.get(use.name)
        found = pool.map if pool else None
        if found is None or found.missing or use.limit is None or not found.biggest or use.reading is None:
            continue
        if use.reading.t - found.t > MAP_TOO_OLD_S:
            continue
        free = found.pool - found.in_use
        biggest = max(chunk.requested for chunk in found.biggest)
        stuck = found.pool >= use.limit * AT_ITS_LIMIT
        if not stuck or found.fragmentation < FRAGMENTED or found.largest_free >= biggest or free < biggest:
            continue
        on_gpu = use.name.startswith("GPU")
        joining = "the allocator cuda_malloc_async, which joins free chunks; " if on_gpu else ""
        yield Finding(
            # Nobody may ever ask for as large a tensor again, until an allocation has failed.
            "warning" if use.hooked.out_of_memory else "info",
            f"{use.place}: {format_bytes(free)} of the pool are free, but in chunks of at most "
            f"{format_bytes(found.largest_free)}: another tensor as large as the largest in use, "
            f"{format_bytes(biggest)}, would not fit, and the pool is at its limit; whether one is asked for is not "
            "known.",
            "[A] cuda_malloc_async does not fragment so; [L] a higher limit" if on_gpu else "[L] a larger pool",
            f"{found.fragmentation:.0%} of the free memory lie outside the largest free chunk, in "
            f"{found.chunks - found.chunks_in_use} free chunks among {found.chunks_in_use} in use. A tensor needs one. "
            f"What helps: {joining}a pool that is taken in one region (growth off, or a limit), since regions never "
            "merge; shapes that stay the same from step to step, "
            "as by padding or a fixed batch size; making what lives long (weights, optimizer slots) first.",
            ("export TF_GPU_ALLOCATOR=cuda_malloc_async",) if on_gpu else (),
            "fragmented",
            use.place,
        )
