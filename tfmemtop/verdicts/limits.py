"""Whether a limit that was set fits what the run needs."""

from collections.abc import Iterator

from tfmemtop.state import State
from tfmemtop.units import format_bytes
from tfmemtop.verdicts.finding import Finding
from tfmemtop.verdicts.look import GIB, MIB, uses

JUST_ABOVE = 0.95
"""Peak over limit. BFC rounds and splits: a pool is hardly ever filled to the last twentieth by chance."""

FAR_ABOVE = 3
FAR_AT_LEAST = GIB
LONG_ENOUGH_S = 60.0
"""A run that has just begun has not shown its peak."""


SMALLEST = 64 * MIB
"""A lower limit gains nothing beside a CUDA context."""


def fitting_limit(peak: int) -> int:
    """The limit that fits a peak: a tenth above it at least, in whole MiB."""
    return max(SMALLEST, -(-peak * 11 // 10 // MIB) * MIB)


def limit_and_peak(state: State) -> Iterator[Finding]:
    """A limit that was asked for lies far above the peak, or hardly above it."""
    run = state.run
    for use in [*uses(state), *uses(state, "CPU")]:
        limit, peak = use.asked_limit, use.peak
        if run is None or limit is None or not peak or use.asynchronous or use.hooked.out_of_memory:
            continue
        fitting = format_bytes(fitting_limit(peak))
        if limit * JUST_ABOVE <= peak:
            yield Finding(
                "info",
                f"{use.place}: the peak in use, {format_bytes(peak)}, comes to {peak / limit:.0%} of the limit of "
                f"{format_bytes(limit)}: a little more, or a little fragmentation, and it may run out of memory.",
                f"[L] {fitting} would leave a tenth; [F] finds what works",
                "What fits depends on the order of allocations too: free memory in pieces does not add up. A tenth "
                "above the peak is usually enough; larger batches or another model need it measured anew.",
                key="limit-tight",
                place=use.place,
            )
        elif (
            use.name.startswith("GPU")
            and use.growth is False
            and limit >= FAR_ABOVE * peak
            and limit - peak >= FAR_AT_LEAST
            and (use.trend is not None and use.trend.end - run.started >= LONG_ENOUGH_S)
        ):
            yield Finding(
                "info",
                f"{use.place}: the limit of {format_bytes(limit)} is {limit / peak:.0f} times the peak in use so far, "
                f"{format_bytes(peak)}, and without growth all of it is held.",
                f"[L] {fitting} would have fitted so far; [F] finds the least that works; [G] growth on",
                "Without growth the pool takes its whole limit at the first allocation. What the script has not needed "
                "so far it may still need, as for a validation with larger batches: let it reach its heaviest part "
                "before lowering the limit.",
                key="limit-loose",
                place=use.place,
            )
