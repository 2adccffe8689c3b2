"""Settings that the script asked for and did not get, or not as it thinks."""

import re
from collections.abc import Iterator

from tfmemtop import events
from tfmemtop.state import State
from tfmemtop.state.model import Hooked
from tfmemtop.units import format_bytes
from tfmemtop.verdicts.finding import Finding
from tfmemtop.verdicts.look import GROWTH_CODE, hooked_of_run, maker, said, uses, variable, where

GROWTH_VARIABLE = "TF_FORCE_GPU_ALLOW_GROWTH"
_DIFFERS = "Memory growth cannot differ between GPU devices"
_UNPARSED = f"{GROWTH_VARIABLE} environment variable is set but could not be parsed"
_GPU = re.compile(r"GPU:(\d+)")

_FORCE_CODE = (
    "import os",
    "",
    f'os.environ["{GROWTH_VARIABLE}"] = "true"  # before TensorFlow is imported',
    "import tensorflow as tf",
)


def _grows(request: events.Requested) -> bool | None:
    """What a call of ``set_memory_growth`` asks for; ``None`` for any other."""
    if request.call != "set_memory_growth":
        return None
    return {"True": True, "False": False}.get(request.arguments.rpartition(",")[2].rpartition("=")[2].strip())


def asked_too_late(state: State) -> Iterator[Finding]:
    """A setting came after TensorFlow had made its devices."""
    for pid, hooked in hooked_of_run(state):
        for request in hooked.requested:
            if not (request.error and "cannot be modified after being initialized" in request.error):
                continue
            if _grows(request) is not None and _growths(hooked) == {_grows(request)}:
                continue  # it is so all the same, by the user's or the environment's word
            asked = f"{request.call}({request.arguments})"
            by = maker(hooked)
            first = f"{by} had TensorFlow make its devices before" if by else "TensorFlow had made its devices already"
            text = f"{where(request)}: {asked} came too late and had no effect: {first} (process {pid})."
            grows = request.call == "set_memory_growth"
            yield Finding(
                "warning",
                text,
                "[G] turns growth on for the next run, whenever the script asks" if grows else "[L] or [V] set it",
                "TensorFlow makes its devices at the first operation, tf.Variable, list_logical_devices or Keras "
                "model, and settles growth, limits and visible devices in that moment. A call that comes later "
                "raises RuntimeError; where the script catches that, it goes on with the settings of before. "
                f"Move the call of {where(request)} up, "
                + (f"before {by}: best right" if by else "right")
                + " behind the import of TensorFlow; imports of the script's own modules that build a model must "
                "come after it." + ("" if by else " Which line made the devices is not known here."),
                GROWTH_CODE if grows else (),
                "asked-too-late",
            )
            break  # the first is the telling one; details list them all


def _growths(hooked: Hooked) -> set[bool | None]:
    """What growth is on the process's GPUs; empty before there are any."""
    return {effective.growth for name, effective in hooked.effective.items() if name.startswith("GPU")}


def growth_dropped(state: State) -> Iterator[Finding]:
    """The script asked for growth and later for a limit: TensorFlow then forgets growth."""
    for pid, hooked in hooked_of_run(state):
        if not hooked.requested or variable(state, pid, GROWTH_VARIABLE) == "false":
            continue  # with that in the environment growth is off, whatever the limit does
        settled = [use for use in uses(state) if use.pid == pid and use.effective]
        if not settled or any(use.growth is not False for use in settled):
            continue
        calls = [request for request in hooked.requested if request.error is None]
        limited = next(
            (r for r in calls if r.call == "set_logical_device_configuration" and "GPU" in r.arguments), None
        )
        growing = [request for request in calls if _grows(request)]
        if limited is None or not growing or (state.run and state.run.settings.growth == "off"):
            continue
        limits = " and ".join(format_bytes(use.asked_limit) for use in settled if use.asked_limit is not None)
        text = (
            f"{where(growing[0])} asked for growth, {where(limited)} set a limit, and the limit dropped growth without"
        )
        text += f" a word: the pool takes all of its {limits} at the first allocation." if limits else " a word."
        yield Finding(
            "warning",
            text,
            "[G] growth on gives both: a limit, and a pool that grows up to it",
            "TensorFlow's Python API has either growth or logical devices with a limit. As soon as one GPU has a "
            "logical device configuration, it leaves growth out of its options for every GPU, without an error or a "
            "warning. The environment variable below has both, and so has tfmemtop.",
            _FORCE_CODE,
            "growth-dropped",
        )


def refused(state: State) -> Iterator[Finding]:
    """A call raised an error for another reason than coming too late."""
    for _, hooked in hooked_of_run(state):
        for request in hooked.requested:
            if not request.error or "cannot be modified after being initialized" in request.error:
                continue
            asked = f"{request.call}({request.arguments})"
            text = f"{where(request)}: {asked} had no effect, it raised {request.error}"
            if _grows(request) and _growths(hooked) == {True}:
                continue
            if "when virtual devices configured" in request.error:
                yield Finding(
                    "warning",
                    f"{where(request)} asked for growth where a limit is set, which TensorFlow refuses: the pool takes "
                    "its whole limit at the first allocation.",
                    "[G] growth on gives both: a limit, and a pool that grows up to it",
                    f"{asked} raised {request.error}. TensorFlow's Python API has either growth or a limit; the "
                    "environment variable below has both, and so has tfmemtop.",
                    _FORCE_CODE,
                    "growth-refused",
                )
            elif request.call == "set_memory_growth" and "Unrecognized device" in request.error:
                yield Finding(
                    "warning",
                    f"{text}.",
                    "[G] turns growth on for every GPU of the next run",
                    "set_memory_growth needs one of the devices of tf.config.list_physical_devices; there is no call "
                    "for all of them at once.",
                    GROWTH_CODE,
                    "growth-of-no-device",
                )
            else:
                yield Finding(
                    "warning",
                    text if text.endswith(".") else f"{text}.",
                    "[Enter] on the process lists all such calls",
                    "Where the script catches the error, it goes on with the settings of before.",
                    key="refused",
                )
            break


def growth_differs(state: State) -> Iterator[Finding]:
    """Growth was set for some of the GPUs only, which TensorFlow refuses when it makes its devices."""
    refusals = [
        hooked.initialised
        for _, hooked in hooked_of_run(state)
        if hooked.initialised and _DIFFERS in (hooked.initialised.error or "")
    ]
    told = any(hooked.initialised for _, hooked in hooked_of_run(state))
    # Of a hook that tells nothing of its attempts, what the script printed has to do.
    if not refusals and (told or not said(state, _DIFFERS)):
        return
    asked = sorted(
        {match[0] for _, hooked in hooked_of_run(state) for r in hooked.requested if _grows(r) for match in
         _GPU.finditer(r.arguments)}
    )  # fmt: skip
    only = f": the script set it for {', '.join(asked)} only" if asked else ""
    at = f" at {where(refusals[0])}" if refusals and refusals[0].file else ""
    yield Finding(
        "error",
        f"TensorFlow could not make its devices{at}, since memory growth differs between the GPUs{only}.",
        "[G] turns growth on for every GPU; [V] hides the others",
        "Growth is one setting of all visible GPUs, though it is asked for one by one. Set it for each of them, or "
        "make only those visible that the script uses. Until then every operation raises the same ValueError.",
        GROWTH_CODE,
        "growth-differs",
    )


def growth_overridden(state: State) -> Iterator[Finding]:
    """The script asked for growth, or against it, and TensorFlow does the other."""
    if state.run is None or state.run.settings.growth is not None:
        return
    for pid, hooked in hooked_of_run(state):
        calls = [request for request in hooked.requested if request.error is None]
        word = variable(state, pid, GROWTH_VARIABLE)
        if word != "false" and any(request.call == "set_logical_device_configuration" for request in calls):
            continue
        asked: dict[str, events.Requested] = {}
        for request in calls:
            if _grows(request) is not None and (match := _GPU.search(request.arguments)):
                asked[match[1]] = request
        for effective in hooked.effective.values():
            last = asked.get(str(effective.physical)) if effective.device.startswith("GPU") else None
            if last is None or effective.growth is None or effective.growth == _grows(last):
                continue
            is_on = "on" if effective.growth else "off"
            if word in ("true", "false"):
                by = f"{GROWTH_VARIABLE}={word} in the environment overrides it"
            elif hooked.initialised:
                by = "not by the environment, but maybe by the ConfigProto of a tf.compat.v1 session"
            else:
                by = f"most likely {GROWTH_VARIABLE} in the environment overrides it ([Enter] on the process shows it)"
            yield Finding(
                "warning",
                f"{where(last)} turned growth {'on' if _grows(last) else 'off'}, but it is {is_on}: {by}.",
                "[G] settles growth for the next run",
                f"{GROWTH_VARIABLE} beats the script's own calls: with exactly true or false in it, TensorFlow does "
                "not look at what set_memory_growth said. Unset it in the shell, the container or the job's settings.",
                (f"unset {GROWTH_VARIABLE}",),
                "growth-overridden",
            )
            break


def growth_word_ignored(state: State) -> Iterator[Finding]:
    """``TF_FORCE_GPU_ALLOW_GROWTH`` holds a word that TensorFlow does not take."""
    for pid, _ in hooked_of_run(state):
        word = variable(state, pid, GROWTH_VARIABLE)
        known = word is not None and word not in ("true", "false") and bool(state.devices)
        if known or said(state, _UNPARSED):
            shown = f"={word}" if word is not None else ""
            yield Finding(
                "warning",
                f"{GROWTH_VARIABLE}{shown} is ignored: TensorFlow takes exactly true or false there.",
                "[G] settles growth for the next run",
                "1, True, yes and the like are logged as an error on stderr and then count as not set: growth stays as "
                "the script asks, off by default.",
                (f"export {GROWTH_VARIABLE}=true",),
                "growth-word-ignored",
            )
            return


SETTINGS_RULES = (growth_differs, asked_too_late, growth_dropped, growth_overridden, growth_word_ignored, refused)
"""All of the above: what the script asked for and did not get is told at its end, too."""
