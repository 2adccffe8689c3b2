"""Running out of memory: what failed, and why."""

import signal
from collections.abc import Iterator

from tfmemtop.state import State
from tfmemtop.state.anatomy import Anatomy, anatomies, closest_to_limit, trying
from tfmemtop.state.model import RunState
from tfmemtop.units import format_bytes
from tfmemtop.verdicts.exhausted import asked_for, doubts, foresee, judge, stood
from tfmemtop.verdicts.finding import Finding

_EXPLAINED = {
    "fragmented": "BFC hands out pieces of the regions it once took, and a tensor needs one piece. What lives long "
    "between what comes and goes keeps free pieces apart. cuda_malloc_async maps pages anew instead; without growth "
    "the pool is one region from the start; shapes that do not change fit into the holes they left.",
    "held_back": "A limit is kept whatever else is free: TensorFlow fails rather than take more.",
    "held_by_others": "TensorFlow's own limit is what was free on the card when it started, less a reserve; what other "
    "processes hold it cannot get.",
    "truly_full": "What is in use are tensors that something still needs: weights, the optimizer's copies, and the "
    "activations of one step, which grow with the batch.",
    "card_full": "Each logical device has a pool of its own, and TensorFlow does not compare their limits with the "
    "card. The CUDA context and libraries take some 610 MiB a process besides.",
    "scratch": "Convolutions try several algorithms, and each its own scratch memory; what does not fit is not taken.",
    "waiting": "The error, if there is one, brings the size that was asked for, and the verdict with it.",
    "untold": "The probe, which reads the pool from inside, and TensorFlow's own lines in the output tell more.",
}

_NEARLY = 0.9
"""Share of the limit from which on a crash may come of it."""

_WAITED_S, _HALF = 8.0, 0.5
"""Standing still so long before a crash, with that share of the limit taken, tells as much."""

_SHELL_SIGNAL = 128  # a shell's exit code for a signal is this much more


def out_of_memory(state: State) -> Iterator[Finding]:
    """The newest out-of-memory error of each process of the run, with its anatomy."""
    for anatomy in anatomies(state):
        verdict = judge(anatomy)
        yield Finding(
            "error",
            f"{describe(anatomy)} {verdict.text} {doubts(anatomy)}".rstrip(),
            verdict.remedy,
            _EXPLAINED[verdict.kind],
            key="out-of-memory",
        )


def describe(a: Anatomy) -> str:
    """What failed and how things stood, in plain words."""
    place = f" on {a.device}" if a.device else ""
    times = f" ({a.times} such errors)" if a.times > 1 else ""
    figures = stood(a)
    text = f"Out of memory{place} in process {a.pid}{times}: {asked_for(a)}" + (f"; {figures}." if figures else ".")
    # Without size and operation TensorFlow's own words are all there is to go by.
    if a.asked is None and a.operation is None and a.message:
        text += f" TensorFlow says: {a.message.splitlines()[0]}."
    return text


def running_out(state: State) -> Iterator[Finding]:
    """TensorFlow finds no room, and perhaps waits for some: an error comes after 10 s, or never."""
    for anatomy in trying(state):
        verdict = foresee(anatomy)
        yield Finding(
            "info" if anatomy.scratch else "warning",
            f"No room on {anatomy.device} in process {anatomy.pid}: {asked_for(anatomy)}; {stood(anatomy)}. "
            f"{verdict.text}",
            verdict.remedy,
            _EXPLAINED[verdict.kind],
            key="running-out",
        )


def crashed_when_full(state: State) -> Iterator[Finding]:
    """TensorFlow's own code may crash, instead of raising an error, when the CPU's pool runs out."""
    run = state.run
    if run is None or state.devices or not _segfault(run):
        return
    closest = closest_to_limit(state)
    if closest is None:
        return
    # TensorFlow waits 10 s for room before it gives up, and nothing is allocated meanwhile.
    waited = closest.still_s >= _WAITED_S and closest.share >= _HALF
    if closest.share < _NEARLY and not waited:
        return
    held = "" if closest.pool is None else f" in a pool of {format_bytes(closest.pool)}"
    stood = (
        f" after its use had stood still for {closest.still_s:.0f} s, as while TensorFlow waits for room"
        if waited
        else ""
    )
    yield Finding(
        "warning",
        f"At most {format_bytes(closest.highest)} were seen in use{held}, of a limit of {format_bytes(closest.limit)}, "
        f"when the run ended by SIGSEGV{stood}: TensorFlow may have run out of its CPU pool, as some of its operations "
        "crash then instead of raising an error.",
        "[L] a larger pool for the next run, [R] starts it",
        "TensorFlow's allocator returns nothing when its limit is reached, and not every operation looks before it "
        "writes there. Seen with TensorFlow 2.21 in a convolution, without tfmemtop as well.",
        key="crashed-when-full",
    )


def _segfault(run: RunState) -> bool:
    return run.signal == signal.SIGSEGV or run.exit_code == _SHELL_SIGNAL + signal.SIGSEGV
