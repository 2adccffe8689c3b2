"""Memory full while nothing is computed."""

from collections.abc import Iterator
from statistics import fmean

from tfmemtop.state import State
from tfmemtop.units import format_bytes
from tfmemtop.verdicts.finding import Finding
from tfmemtop.verdicts.look import uses

FULL_SHARE = 0.9
IDLE_PERCENT = 15.0
WINDOW_S = 30.0
LEAST_READINGS = 20
STARTING_S = 15.0
"""TensorFlow loads libraries and tries kernels before the GPU has anything to do."""

BUSY_PERCENT = 80.0
"""Of one core, over the script's processes: Python that waits for the GPU spins with much less or with all of one."""


def full_but_idle(state: State) -> Iterator[Finding]:
    """A card's memory is taken, and its processors have had little to do for half a minute."""
    run = state.run
    if run is None or not run.going:
        return
    told = set()
    for use in uses(state):
        card = use.card
        if card is None or use.hooked.ended or card.info.index in told or use.effective is None:
            continue
        whole, reading = card.info.total, card.reading
        if whole is None or reading is None or reading.used is None or reading.used < whole * FULL_SHARE:
            continue
        since = max(state.now - WINDOW_S, use.effective.t + STARTING_S)
        readings = [percent for t, percent in card.busy if t >= since]
        if len(readings) < LEAST_READINGS or fmean(readings) >= IDLE_PERCENT:
            continue
        told.add(card.info.index)
        host = [percent for t, percent in run.busy if t >= since]
        cores = fmean(host) / 100 if host else None
        busy = cores is not None and cores * 100 >= BUSY_PERCENT
        text = (
            f"{use.place}: {format_bytes(reading.used)} of {format_bytes(whole)} are taken, and its processors were "
            f"busy for {fmean(readings):.0f}% of the last {WINDOW_S:.0f} s"
        )
        if busy and cores is not None:
            text += f" while the script kept {cores:.1f} cores busy: it likely waits for its input."
        else:
            text += ": memory that is taken is not memory at work, and the script computes little there now."
        explanation = (
            "Memory and work are counted apart. What TensorFlow has reserved or cached shows as used, whether or not "
            "anything is computed. "
        )
        if busy:
            explanation += (
                "Reading, decoding or augmenting on the CPU is the usual reason for a busy host beside an idle GPU. "
                "Prefetch, read in parallel, cache what fits into host memory, or take larger batches."
            )
        else:
            explanation += "The host had little to do as well: it may wait for a disk, a network, a lock or a person."
        code = (
            "dataset = dataset.map(prepare, num_parallel_calls=tf.data.AUTOTUNE)",
            "dataset = dataset.prefetch(tf.data.AUTOTUNE)",
        )
        yield Finding(
            "warning" if busy else "info",
            text,
            "larger batches or prefetching" if busy else "",
            explanation,
            code if busy else (),
            "full-but-idle",
        )
