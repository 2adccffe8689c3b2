"""The text of findings about a card: the processes on it, how busy it is, and whether TensorFlow sees it."""

from tfmemtop.rules.beside import HeldBeside
from tfmemtop.rules.busy import FullButIdle, ReservedUnused
from tfmemtop.rules.devices import GpusHidden, LimitsBeyondCard, NoGpuSeen, WhyNoGpu
from tfmemtop.rules.others import OthersHoldCard, TwoReserveCard
from tfmemtop.rules.outside import USUAL_BETWEEN, OutsidePool
from tfmemtop.state.account import USUAL_CONTEXT, USUAL_LIBRARIES
from tfmemtop.units import format_bytes
from tfmemtop.words.counting import counted
from tfmemtop.words.findings.code import GROWTH
from tfmemtop.words.findings.saying import Said, say
from tfmemtop.words.places import place_name

_NEARLY_ALL = 0.95

BESIDE_POOLS = f"{format_bytes(USUAL_CONTEXT + USUAL_LIBRARIES)} on an H200"
"""The memory that CUDA's context and libraries take in a process, as text."""


@say.register
def _(found: OthersHoldCard) -> Said:
    at_most = f"TensorFlow can take {format_bytes(found.free)} at most"
    if found.limit is not None:
        at_most = f"TensorFlow set its limit to what was free then, {format_bytes(found.limit)}"
    return Said(
        f"{place_name(found.place)}: {_who_held(found)} of the card's {format_bytes(found.whole)} when the run "
        "started.",
        "TensorFlow reads the free memory once, when it makes its devices. It takes that, less a small reserve, as "
        "the limit of its pool, with growth and without. It never asks for what others give back later.",
        figures=f"{at_most}. The limit stays when they have ended.",
    )


def _who_held(found: OthersHoldCard) -> str:
    held, largest = f"held {format_bytes(found.used)}", found.largest
    if largest is None:
        return f"other processes {held}"
    who = f"process {largest.pid}" + (f" ({largest.script})" if largest.script else "")
    if largest.used >= found.used * _NEARLY_ALL:
        return f"{who} {held}"
    return f"{who}, which has {format_bytes(largest.used)}, and others {held}"


@say.register
def _(found: TwoReserveCard) -> Said:
    first, second = found.first, found.second
    reserved = (
        "Without growth each reserves all that is free when it starts, and the later one gets the rest."
        if found.growth is False
        else f"Growth is off in {first.pid}, so it took all that was free when it started. Whether growth is on in "
        f"{second.pid} is not known."
    )
    return Said(
        f"{place_name(found.place)}: two processes of {found.script or 'this run'} fill the card, {first.pid} "
        f"({format_bytes(first.used)}) and {second.pid} ({format_bytes(second.used)}).",
        "Two TensorFlow processes share a card well only if each has growth or a limit: with growth a process takes "
        "what it needs, with a limit no more than the limit. A worker process (multiprocessing, a data loader, a "
        "second notebook) that imports TensorFlow and touches the GPU reserves memory like any other. Hide the GPU "
        "from it if it does not compute there.",
        (*GROWTH, "", 'tf.config.set_visible_devices([], "GPU")  # in a worker that needs no GPU'),
        reserved,
    )


@say.register
def _(found: OutsidePool) -> Said:
    who = "Most likely another library in the process takes memory itself (CuPy, PyTorch, JAX, RAPIDS)"
    who += ", or NCCL's buffers" if found.between_gpus else ""
    who += ", or kernels, all of which CUDA_MODULE_LOADING=EAGER loads at once" if found.eager else ""
    buffers = f", NCCL's buffers between GPUs up to {format_bytes(USUAL_BETWEEN)}" if found.between_gpus else ""
    return Said(
        f"{place_name(found.place)}: process {found.pid} holds {format_bytes(found.outside)} outside TensorFlow's "
        f"pool. About {format_bytes(found.usual)} are usual.",
        f"NVML counts {format_bytes(found.total)} for the process, of which TensorFlow's pool has "
        f"{format_bytes(found.total - found.outside)}. On an H200 a CUDA context takes {format_bytes(USUAL_CONTEXT)}, "
        f"workspaces of cuBLAS and cuDNN {format_bytes(USUAL_LIBRARIES)}{buffers}; other cards and drivers differ, and "
        "CUDA before 11.7 loads all kernels at once. A library that calls CUDA itself has a pool of its own, which "
        "get_memory_info does not see and no memory limit of TensorFlow covers.",
        figures=f"{who}.",
    )


@say.register
def _(found: HeldBeside) -> Said:
    script = f" ({found.script})" if found.script else ""
    why = (
        "TensorFlow is imported there, and has made no device." if found.imported else "It has not imported TensorFlow."
    )
    return Said(
        f"{place_name(found.place)}: process {found.pid}{script} holds {format_bytes(found.used)} outside TensorFlow.",
        "Another library uses CUDA in this process of the run (JAX, PyTorch, CuPy, RAPIDS). A CUDA context alone takes "
        f"{format_bytes(USUAL_CONTEXT)} on an H200. No setting of TensorFlow changes what it holds. TensorFlow in "
        "other processes gets what it leaves.",
        figures=why,
    )


@say.register
def _(found: FullButIdle) -> Said:
    where, taken = place_name(found.place), _taken(found)
    if found.waits_for_host and found.cores is not None:
        return Said(
            f"{where} probably waits for the host: its utilisation averaged {found.percent:.0f}%, while the script "
            f"kept {found.cores:.1f} cores busy.",
            "Memory and work are counted separately: what TensorFlow has reserved or cached shows as used, whether or "
            "not anything is computed. A busy host beside an idle GPU usually reads, decodes or augments its input on "
            "the CPU; it may also trace, save or run plain Python. Prefetch, read in parallel, cache what fits into "
            "host memory, or use larger batches.",
            (
                "dataset = dataset.map(prepare, num_parallel_calls=tf.data.AUTOTUNE)",
                "dataset = dataset.prefetch(tf.data.AUTOTUNE)",
            ),
            f"The input is the usual reason. {taken}.",
        )
    others = " Growth would leave others what the script does not need." if found.reserved else ""
    return Said(
        f"{where} is full but idle: its utilisation averaged {found.percent:.0f}%.",
        "Memory and work are counted separately: what TensorFlow has reserved or cached shows as used, whether or not "
        "anything is computed. The host was nearly idle too: the script may wait for a disk, a network, a lock or "
        f"a person.{others}",
        figures=f"{taken}. The script computes little there now.",
    )


@say.register
def _(found: ReservedUnused) -> Said:
    return Said(
        f"{place_name(found.place)} is reserved but idle: the script seems to compute on GPU {found.working} alone.",
        "TensorFlow makes a device of every visible GPU, and without growth reserves the memory of each. It computes "
        "on the first, unless the script says otherwise (tf.device, tf.distribute).",
        (
            'gpus = tf.config.list_physical_devices("GPU")',
            "# before anything else that touches the GPUs:",
            'tf.config.set_visible_devices(gpus[:1], "GPU")',
        ),
        f"{_taken(found)}. The utilisation was {found.percent:.0f}% here and {found.working_percent:.0f}% on GPU "
        f"{found.working}.",
    )


def _taken(found: FullButIdle | ReservedUnused) -> str:
    return (
        f"{format_bytes(found.used)} of {format_bytes(found.whole)} are taken; the average is over {found.span_s:.0f} s"
    )


@say.register
def _(found: GpusHidden) -> Said:
    it = "the GPU" if found.gpus == 1 else "the GPUs"
    return Said(
        f"TensorFlow computes on the CPU: CUDA_VISIBLE_DEVICES={found.value} in the environment hides {it}.",
        "The shell, the job's settings or the script itself set the variable before TensorFlow made its devices. CUDA "
        "then has no GPU. TensorFlow goes on and prints nothing about it in the script's own output.",
        ("unset CUDA_VISIBLE_DEVICES",),
        _driver_has(found),
    )


@say.register
def _(found: NoGpuSeen) -> Said:
    return Said(
        f"TensorFlow computes on the CPU: {_why_no_gpu(found)}.",
        "When TensorFlow cannot use the GPU, it goes on and prints nothing about it in the script's own output. "
        "Its wheel for pip needs the extra and-cuda, which brings CUDA's libraries in the version that TensorFlow was "
        "built for. The process's details show its environment.",
        (
            "pip install 'tensorflow[and-cuda]'",
            "python -c 'import tensorflow as tf; print(tf.config.list_physical_devices(\"GPU\"))'",
        ),
        _driver_has(found),
    )


def _driver_has(found: GpusHidden | NoGpuSeen) -> str:
    return f"The driver has {counted(found.gpus, 'GPU')} here; this is process {found.pid}."


def _why_no_gpu(found: NoGpuSeen) -> str:
    if found.reason is WhyNoGpu.CUDA_FAILED:
        return "CUDA could not be started, or CUDA_VISIBLE_DEVICES hides the GPU"
    if found.reason is WhyNoGpu.UNKNOWN:
        return "CUDA_VISIBLE_DEVICES may hide it, CUDA's libraries may be missing, or this TensorFlow has no CUDA"
    if found.libraries:
        return f"it could not load {', '.join(found.libraries)}"
    return "it could not load some of CUDA's libraries (with TF_CPP_MAX_VLOG_LEVEL=1 it names them)"


@say.register
def _(found: LimitsBeyondCard) -> Said:
    where, whole = place_name(found.place), format_bytes(found.whole)
    together = format_bytes(sum(found.limits))
    if len(found.limits) == 1:
        headline = f"{where} has a limit of {together}, more than the card's {whole}."
        figures = "The card is full before the limit is reached."
    else:
        number = len(found.limits)
        headline = (
            f"{where}: {number} logical devices have limits of {together} together, more than the card's {whole}."
        )
        figures = "The card is full before all of them reach their limits."
    return Said(
        headline,
        "TensorFlow takes the limits as they are given and does not compare them with the card. Each logical device "
        "has a pool of its own, and what it does not use is lost to the others. CUDA's context and libraries take more "
        f"besides: {BESIDE_POOLS}.",
        figures=figures,
    )
