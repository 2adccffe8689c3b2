"""Memory full while nothing is computed."""

from collections.abc import Iterator
from statistics import fmean

from tfmemtop.state import State
from tfmemtop.state.lookup import process_total
from tfmemtop.state.model import DeviceState
from tfmemtop.units import format_bytes
from tfmemtop.verdicts.finding import Finding
from tfmemtop.verdicts.look import Use, uses

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
        readings = _busy(card, since)
        if len(readings) < LEAST_READINGS or fmean(readings) >= IDLE_PERCENT or _of_others(state, card, reading.used):
            continue
        told.add(card.info.index)
        taken = (
            f"{use.place}: {format_bytes(reading.used)} of {format_bytes(whole)} are taken, and its processors were "
            f"busy for {fmean(readings):.0f}% of the last {state.now - since:.0f} s"
        )
        if working := _working(state, use, since):
            yield _unused(use.place, taken, working)
            continue
        host = [percent for t, percent in run.busy if t >= since]
        cores = fmean(host) / 100 if host else None
        busy = cores is not None and cores * 100 >= BUSY_PERCENT
        if busy and cores is not None:
            text = f"{taken} while the script kept {cores:.1f} cores busy: it likely waits for the host, as a rule for "
            text += "its input."
        else:
            text = f"{taken}: memory that is taken is not memory at work, and the script computes little there now."
        explanation = (
            "Memory and work are counted apart. What TensorFlow has reserved or cached shows as used, whether or not "
            "anything is computed. "
        )
        if busy:
            explanation += (
                "Reading, decoding or augmenting on the CPU is the usual reason for a busy host beside an idle GPU; "
                "tracing, saving or plain Python is another. "
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
            "larger batches or prefetching" if busy else _for_others(use),
            explanation,
            code if busy else (),
            "full-but-idle",
            use.place,
        )


def _busy(card: DeviceState, since: float) -> list[int]:
    """Percent, reading by reading."""
    return [percent for t, percent in card.busy if t >= since]


def _of_others(state: State, card: DeviceState, used: int) -> bool:
    """Whether it is others who fill *card*: how busy it is then says nothing of the run."""
    mine = process_total(state, card)
    if mine is not None:
        return mine < used / 2
    before = state.run.before.get(card.info.index) if state.run else None
    return before is not None and before[0] > used / 2


def _working(state: State, idle: Use, since: float) -> str:
    """Another GPU of the same process that has something to do, ``GPU 0 was busy for 90%``; empty if none has."""
    for use in uses(state):
        if use.pid != idle.pid or use.card is None or use.card is idle.card:
            continue
        busy = _busy(use.card, since)
        if busy and fmean(busy) >= IDLE_PERCENT:
            return f"GPU {use.card.info.index} was busy for {fmean(busy):.0f}%"
    return ""


def _for_others(use: Use) -> str:
    return "[G] growth on leaves others what is not needed" if use.growth is False and not use.asynchronous else ""


def _unused(place: str, taken: str, working: str) -> Finding:
    return Finding(
        "info",
        f"{taken}, while {working}: the script seems to compute on that one alone.",
        "[V] shows the next run only the GPUs that it uses",
        "TensorFlow makes a device of every visible GPU, and without growth reserves the memory of each. What is "
        "computed goes to the first, unless the script says otherwise (tf.device, tf.distribute).",
        (
            'gpus = tf.config.list_physical_devices("GPU")',
            'tf.config.set_visible_devices(gpus[:1], "GPU")  # before anything else that touches the GPUs',
        ),
        "full-but-idle",
        place,
    )
