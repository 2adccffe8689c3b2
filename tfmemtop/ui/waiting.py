"""The text about what the newest run waits for before its memory can be shown, and why there is none to show. Pure."""

from tfmemtop.events import Notice, NoticeKind
from tfmemtop.findings.rules.attached import FROM_OUTSIDE, reading_sentence
from tfmemtop.state.waiting import Stage, Waiting
from tfmemtop.units import spoken

ASKED = "GPUs"
"""The title of the GPUs' panel until the driver has answered."""

HOST_MEMORY = "the host's memory"
"""The text beside the title, where a bar of the host's memory is drawn below."""


def heading(answer: Notice | None) -> str:
    """Return the title where no GPU is shown, by the driver's *answer*."""
    if answer is None or answer.kind is None:
        return ASKED
    return "No GPU" if answer.kind in (NoticeKind.NO_DRIVER, NoticeKind.NO_GPU) else "GPUs cannot be read"


def stage(waits: Waiting) -> str:
    """Return what the run waits for, in one sentence."""
    tensorflow = f"TensorFlow {waits.tensorflow}" if waits.tensorflow else "TensorFlow"
    match waits.stage:
        case Stage.NO_RUN:
            return "No script has been started."
        case Stage.NOT_IMPORTED if waits.over:
            return "The script ended without importing TensorFlow."
        case Stage.NOT_IMPORTED:
            return "The script has not imported TensorFlow yet."
        case Stage.OTHERS:
            names = " and ".join(f"{one.name.title} {one.version}".rstrip() for one in waits.frameworks)
            return f"The script {'used' if waits.over else 'uses'} {names}, and not TensorFlow."
        case Stage.NOT_INSIDE:
            reason = f": {waits.absence.text}" if waits.absence else ""
            return f"tfmemtop cannot see inside the script{reason}."
        case Stage.IMPORTING if waits.over:
            return "The script ended while it imported TensorFlow."
        case Stage.IMPORTING:
            return f"TensorFlow is being imported{_for(waits)}."
        case Stage.IMPORTED if waits.over:
            return f"The script imported {tensorflow} and ended before TensorFlow initialised its devices."
        case Stage.IMPORTED:
            return f"{tensorflow} is imported. It initialises its devices at its first operation."
        case Stage.REFUSED:
            return f"{tensorflow} refused to initialise its devices."
        case Stage.MADE if waits.over:
            return f"{tensorflow} initialised its devices. The script ended before a pool was read."
        case Stage.MADE:
            return f"{tensorflow} has initialised its devices. Its pools are not read yet."
        case Stage.OUTSIDE:
            return reading_sentence(waits.outside) if waits.outside else "No process is read."
        case Stage.NO_POOL:
            verb = "computed" if waits.over else "computes"
            took = "took" if waits.over else "takes"
            return f"{tensorflow} {verb} on the CPU and {took} memory by malloc: there is no pool to see."


_SHORT = {
    Stage.NOT_IMPORTED: "TensorFlow not imported yet",
    Stage.NOT_INSIDE: "not inside",
    Stage.IMPORTING: "importing TensorFlow",
    Stage.IMPORTED: "no operation yet",
    Stage.MADE: "reading pools",
    Stage.NO_POOL: "no pool on the CPU",
    Stage.OUTSIDE: FROM_OUTSIDE,
}


def in_short(waits: Waiting) -> str:
    """Return what a run that goes on waits for, in a few words; empty where there is nothing to wait for."""
    return "" if waits.over else _SHORT.get(waits.stage, "")


def without_gpu(waits: Waiting, steers: bool) -> tuple[str, ...]:
    """Return the texts for a screen without a GPU, the longest first; with *steers*, with the keys for the next run."""
    if waits.stage is Stage.NO_RUN:
        run = "TensorFlow's memory on the CPU is shown by: tfmemtop --cpu-pool 4G -- python train.py"
        return (f"{run}; a process that runs already: tfmemtop attach PID, of those that tfmemtop --once lists", run)
    told = stage(waits)
    if waits.stage is Stage.OUTSIDE:
        return (told,)
    if waits.stage is Stage.OTHERS:
        return (f"{told} On the CPU, it has no pool of its own to show.", told)
    if waits.pool_chosen and waits.stage is not Stage.NO_POOL:
        return (told,)
    keys = " [L] gives one to the next run, [R] starts it." if steers else ""
    if waits.stage is Stage.NO_POOL:
        long = f"{told} With tfmemtop --cpu-pool 4G there is one.{keys}"
        return (long, "CPU, memory by malloc: no pool to see without --cpu-pool 4G" + (" or [L]." if steers else "."))
    usual = (
        "On the CPU it usually takes memory by malloc, without a pool to see; with tfmemtop --cpu-pool 4G it has one."
    )
    brief = "On the CPU: no pool to see without --cpu-pool 4G" + (" or [L]." if steers else ".")
    return (f"{told} {usual}{keys}", f"{told} {brief}", brief)


def _for(waits: Waiting) -> str:
    return "" if waits.since_s is None or waits.since_s < 1 else f", for {spoken(waits.since_s)}"
