"""The text of findings about settings that the script requested and did not get."""

from tfmemtop.rules.callsite import Callsite, callsite
from tfmemtop.rules.settings import (
    AskedTooLate,
    CallRefused,
    GrowthDiffers,
    GrowthDropped,
    GrowthOfNoDevice,
    GrowthOverridden,
    GrowthRefused,
    GrowthWordIgnored,
)
from tfmemtop.tensorflow_text import GROWTH_VARIABLE
from tfmemtop.units import format_bytes
from tfmemtop.words.findings.code import GROWTH
from tfmemtop.words.findings.saying import Said, say
from tfmemtop.words.places import line_of, line_with_code
from tfmemtop.words.requests import call_text

_BY_ENVIRONMENT = (
    "import os",
    "",
    f'os.environ["{GROWTH_VARIABLE}"] = "true"  # before TensorFlow is imported',
    "import tensorflow as tf",
)


@say.register
def _(found: AskedTooLate) -> Said:
    where = line_of(callsite(found.request))
    first = "TensorFlow had made its devices already"
    if found.made_at is not None:
        first = f"{line_with_code(found.made_at)} had TensorFlow make its devices before"
    return Said(
        f"{where}: {call_text(found.request)} came too late and had no effect.",
        "TensorFlow makes its devices at the first operation, tf.Variable, list_logical_devices or Keras model. At "
        "that moment it fixes growth, limits and visible devices. A later call raises RuntimeError; if the script "
        f"catches that, it goes on with the settings of before. {_move_up(where, found.made_at)}",
        GROWTH if found.of_growth else (),
        f"In process {found.pid}, {first}.",
    )


def _move_up(where: str, made_at: Callsite | None) -> str:
    imports = "right after the import of TensorFlow. Import the script's own modules that build a model after it."
    if made_at is None:
        return f"Move the call of {where} up, {imports} Which line made the devices is not known here."
    return f"Move the call of {where} up, before {line_with_code(made_at)}: best {imports}"


@say.register
def _(found: GrowthDropped) -> Said:
    limits = " and ".join(format_bytes(limit) for limit in found.limits)
    return Said(
        f"{line_of(callsite(found.growth))} asked for growth, {line_of(callsite(found.limit))} set a limit, and the "
        "limit silently dropped growth.",
        "TensorFlow's Python API has either growth or logical devices with a limit. As soon as one GPU has a logical "
        "device configuration, TensorFlow leaves growth out of its options for every GPU, without an error or a "
        f"warning. {_BOTH}",
        _BY_ENVIRONMENT,
        f"The pool takes all of its {limits} at the first allocation." if limits else "",
    )


_BOTH = (
    "The environment variable below gives both, a limit and a pool that grows up to it, and so does growth on in "
    "tfmemtop."
)


@say.register
def _(found: GrowthRefused) -> Said:
    return Said(
        f"{line_of(callsite(found.request))} asked for growth where a limit is set, which TensorFlow refuses.",
        f"{call_text(found.request)} raised {found.request.error}. TensorFlow's Python API has either growth or a "
        f"limit. {_BOTH}",
        _BY_ENVIRONMENT,
        "The pool takes its whole limit at the first allocation.",
    )


@say.register
def _(found: GrowthOfNoDevice) -> Said:
    return Said(
        _raised(found),
        "set_memory_growth needs one of the devices of tf.config.list_physical_devices; there is no call for all of "
        "them at once.",
        GROWTH,
    )


@say.register
def _(found: CallRefused) -> Said:
    return Said(
        _raised(found),
        "If the script catches the error, it goes on with the settings of before. The process's details list all such "
        "calls.",
    )


def _raised(found: GrowthOfNoDevice | CallRefused) -> str:
    request = found.request
    text = f"{line_of(callsite(request))}: {call_text(request)} had no effect: it raised {request.error}"
    return text if text.endswith(".") else f"{text}."


@say.register
def _(found: GrowthDiffers) -> Said:
    at = f" at {line_of(found.at)}" if found.at else ""
    only = f": the script set it for {', '.join(found.asked)} only" if found.asked else ""
    return Said(
        f"TensorFlow could not make its devices{at}, since memory growth differs between the GPUs{only}.",
        "Growth is one setting for all visible GPUs, though the script asks for it one by one. Set it for each of "
        "them, or make visible only those that the script uses. Until then every operation raises the same ValueError.",
        GROWTH,
    )


@say.register
def _(found: GrowthOverridden) -> Said:
    asked, is_on = ("on" if found.request.growth else "off"), ("on" if found.is_on else "off")
    if found.word is not None:
        by = f"{GROWTH_VARIABLE}={found.word} in the environment overrides it"
    elif found.sure:
        by = "the environment does not override it, but the ConfigProto of a tf.compat.v1 session may"
    else:
        by = f"most likely {GROWTH_VARIABLE} in the environment overrides it (the process's details show it)"
    return Said(
        f"{line_of(callsite(found.request))} turned growth {asked}, but it is {is_on}: {by}.",
        f"{GROWTH_VARIABLE} overrides the script's own calls: if it is exactly true or false, TensorFlow ignores what "
        "set_memory_growth said. Unset it in the shell, the container or the job's settings.",
        (f"unset {GROWTH_VARIABLE}",),
    )


@say.register
def _(found: GrowthWordIgnored) -> Said:
    word = f"={found.word}" if found.word is not None else ""
    return Said(
        f"{GROWTH_VARIABLE}{word} is ignored: TensorFlow takes exactly true or false there.",
        "For 1, True, yes and the like TensorFlow logs an error on stderr and acts as if the variable were not set: "
        "growth stays as the script asks, off by default.",
        (f"export {GROWTH_VARIABLE}=true",),
    )
