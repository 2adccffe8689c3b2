"""The text about a suggested limit: what it rests on, and how to set it. Pure."""

import shlex
from collections.abc import Iterator, Sequence

from tfmemtop.settings import Growth
from tfmemtop.suggested import Basis, SuggestedLimit
from tfmemtop.units import MIB, counted, format_bytes

GUESS = "~ a guess"
"""The beginning of a choice if no run is known to have worked under that limit."""

IN_THE_SCRIPT = "or, in the script, before TensorFlow is imported:"
"""The text that comes before the lines of :func:`code`."""


_PEAK_ONLY: dict[Growth | None, str] = {
    "off": "with growth off the pool is as large as its limit, whatever is needed",
    "on": "how large the pool was is not known",
    None: "how large the pool was is not known",
}

_WHY_EACH = {
    Basis.POOL_REACHED: "These rest on the pools that were reached",
    Basis.FIT: "These rest on a try of fit that passed",
    Basis.REPLAYED: "These rest on the run's allocations, replayed with TensorFlow's own allocator",
    Basis.REPLAYED_SO_FAR: "These are guesses: the run's allocations so far, replayed with TensorFlow's own allocator",
    Basis.POOL_SO_FAR: "These are guesses, from the pools so far",
    Basis.PEAK: "These are guesses, twice the peaks",
    Basis.OTHER_GROWTH: "These are guesses: they worked with another growth",
    Basis.FAILED_REQUEST: "These are guesses. There is room for the request that failed",
}


def typed(size: int) -> str:
    """Return *size* bytes in the form that options and dialogs accept: ``1078M``."""
    return f"{size // MIB}M"


def amount(suggested: SuggestedLimit) -> str:
    """Return the limit: ``1078M``, or ``~1078M`` if it is a guess."""
    return ("~" if suggested.is_guess else "") + typed(suggested.size)


def basis(suggested: SuggestedLimit) -> str:
    """Return what the limit rests on, for a dialog's list: ``rests on the pool that run 1 reached, 1.0 GiB``."""
    figure = format_bytes(suggested.figure)
    if suggested.divided:
        return (f"{GUESS}: " if suggested.is_guess else "") + f"shared by {_each(suggested)}"
    return {
        Basis.POOL_REACHED: f"rests on the pool that run {suggested.run} reached{_with_growth(suggested)}, {figure}",
        Basis.FIT: f"rests on a try of fit that passed under {figure}",
        Basis.REPLAYED: replayed(suggested),
        Basis.REPLAYED_SO_FAR: f"{GUESS}: {replayed(suggested)} so far",
        Basis.POOL_SO_FAR: f"{GUESS}: the pool of run {suggested.run} came to {figure} so far",
        Basis.PEAK: f"{GUESS}: twice the peak in use, {figure}",
        Basis.OTHER_GROWTH: f"{GUESS}: it worked{_with_growth(suggested)} only",
        Basis.FAILED_REQUEST: f"{GUESS}: the pool, and the {figure} it had no room for",
    }[suggested.basis]


def replayed(suggested: SuggestedLimit) -> str:
    """Return what was replayed: ``replayed with TensorFlow's own allocator: 3,044 allocations of 20 steps``."""
    return f"replayed with TensorFlow's own allocator: {_allocations(suggested)}"


def _allocations(suggested: SuggestedLimit) -> str:
    allocations, steps = suggested.seen or (0, 0)
    return counted(allocations, "allocation") + (f" of {counted(steps, 'step')}" if steps else "")


def sentences(suggested: SuggestedLimit) -> Iterator[str]:
    """Yield the same as :func:`basis` in whole sentences, with the limit."""
    if suggested.divided:
        yield from _of_each(suggested)
    else:
        yield _of_all(suggested)
    if suggested.is_guess:
        yield "tfmemtop fit finds the smallest limit that works."


def _of_all(suggested: SuggestedLimit) -> str:
    figure, growth = format_bytes(suggested.figure), _with_growth(suggested)
    limit = f"A limit of {amount(suggested)}" + (f" for each of {suggested.gpus} GPUs" if suggested.gpus > 1 else "")
    return {
        Basis.POOL_REACHED: f"{limit} rests on the pool that run {suggested.run} reached{growth}, {figure}, "
        "with a margin.",
        Basis.FIT: f"{limit} rests on a try of fit that passed under {figure}.",
        Basis.REPLAYED: f"{limit}{growth} rests on {_allocations(suggested)}, which fit under it with a margin, "
        f"replayed with TensorFlow's own allocator. {_too_low(figure)}",
        Basis.REPLAYED_SO_FAR: f"{limit}{growth} is a guess: {_allocations(suggested)} so far fit under it, replayed "
        f"with TensorFlow's own allocator, and what comes later may need more. {_too_low(figure)}",
        Basis.POOL_SO_FAR: f"{limit} is a guess: the pool came to {figure} so far, and what comes later may need more.",
        Basis.PEAK: f"{limit} is a guess, twice the peak: {_PEAK_ONLY[suggested.growth]}.",
        Basis.OTHER_GROWTH: f"{limit} is a guess: it worked{growth} only.",
        Basis.FAILED_REQUEST: f"{limit} is a guess. It has room for the {figure} that failed; what would have come "
        "after that is not known.",
    }[suggested.basis]


def _too_low(least: str) -> str:
    # Because some wait, *least* may be below the run's peak.
    return f"Under less than {least} they do not fit, even if some wait until others have freed memory."


def _of_each(suggested: SuggestedLimit) -> Iterator[str]:
    """Yield the sentences for logical devices that share a GPU: one limit for all would be too small, or too large."""
    yield f"Each logical device needs a limit of its own: {_each(suggested)}. {_WHY_EACH[suggested.basis]}."
    yield f"--memory-limit is for a whole GPU, and its logical devices share it: {amount(suggested)}."


def _each(suggested: SuggestedLimit) -> str:
    about = "~" if suggested.is_guess else ""
    return ", ".join(f"{limit.device} {about}{typed(limit.size)}" for limit in suggested.each)


def _with_growth(suggested: SuggestedLimit) -> str:
    return f" with growth {suggested.growth}" if suggested.growth else ""


def options(suggested: SuggestedLimit) -> tuple[str, ...]:
    """Return the options of tfmemtop that set the limit."""
    option = "--memory-limit" if suggested.on_gpu else "--cpu-pool"
    growth = ("--growth", suggested.growth) if suggested.growth else ()
    return (*growth, option, typed(suggested.size))


def started(suggested: SuggestedLimit, command: Sequence[str]) -> tuple[str, ...]:
    """Return the words of the command line with which tfmemtop starts *command* under the limit."""
    return ("tfmemtop", *options(suggested), "--", *command)


def kernel_installed(suggested: SuggestedLimit) -> tuple[str, ...]:
    """Return the words of the command line that sets the limit for all kernels of tfmemtop, which Jupyter starts."""
    return ("tfmemtop", "kernel", "install", *options(suggested))


def command_line(suggested: SuggestedLimit, command: Sequence[str]) -> str:
    """Return the words of :func:`started` as one line for the shell."""
    return shlex.join(started(suggested, command))


def code(suggested: SuggestedLimit) -> tuple[str, ...]:
    """Return the lines of Python that set the limit in the script itself."""
    if not suggested.on_gpu:
        return (
            "import os",
            'os.environ["TF_CPU_ALLOCATOR_USE_BFC"] = "true"',
            f'os.environ["TF_CPU_BFC_MEM_LIMIT_IN_MB"] = "{suggested.size // MIB}"',
        )
    return (*_growing(suggested), "import tensorflow as tf", *_limits(suggested))


def _growing(suggested: SuggestedLimit) -> tuple[str, ...]:
    if suggested.growth != "on":
        return ()
    return (
        "import os",
        'os.environ["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"  # a limit alone turns growth off',
    )


def _limits(suggested: SuggestedLimit) -> Iterator[str]:
    if not suggested.divided:
        yield 'for gpu in tf.config.list_physical_devices("GPU"):'
        yield f"    limit = tf.config.LogicalDeviceConfiguration(memory_limit={suggested.size // MIB})  # MiB"
        yield "    tf.config.set_logical_device_configuration(gpu, [limit])"
        return
    yield 'gpus = tf.config.list_physical_devices("GPU")'
    for index, card in enumerate(dict.fromkeys(limit.card for limit in suggested.each)):
        yield f"tf.config.set_logical_device_configuration(gpus[{index}], ["
        for limit in suggested.each:
            if limit.card == card:
                mib = limit.size // MIB
                yield f"    tf.config.LogicalDeviceConfiguration(memory_limit={mib}),  # {limit.device}, MiB"
        yield "])"
