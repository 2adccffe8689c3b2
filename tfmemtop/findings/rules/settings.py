"""The rules for settings that the script requested and did not get, or got only in part."""

from collections.abc import Iterator

from tfmemtop import events
from tfmemtop.events.machine import is_gpu
from tfmemtop.findings.cause import Key
from tfmemtop.findings.finding import Finding, Said, Severity
from tfmemtop.findings.names import Callsite, call_text, callsite, devices_made_at, line_of, line_with_code
from tfmemtop.findings.remedy import GROWTH, Action, Remedy
from tfmemtop.findings.rules import rule
from tfmemtop.findings.run_devices import hooked_of_run, output, printed, run_devices, variable
from tfmemtop.state import State
from tfmemtop.state.lookup import limits_a_gpu
from tfmemtop.state.model import Hooked
from tfmemtop.tensorflow_text import (
    CALLED_TOO_LATE,
    GROWTH_BESIDE_LIMIT,
    GROWTH_DIFFERS,
    GROWTH_VARIABLE,
    GROWTH_VARIABLE_IGNORED,
    NO_SUCH_DEVICE,
    ignored_word,
)
from tfmemtop.units import format_bytes

TAKEN = ("true", "false")
"""The values that TensorFlow accepts for the environment variable of growth."""


class AskedTooLate(Finding, frozen=True):
    """A setting came after TensorFlow had initialised its devices, at ``made_at`` where that is known."""

    key = Key.SETTING

    pid: int
    request: events.Requested
    made_at: Callsite | None

    @property
    def of_growth(self) -> bool:
        return self.request.call is events.Call.SET_MEMORY_GROWTH

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        if self.of_growth:
            return (Action.GROWTH_ON,)
        if self.request.call is events.Call.SET_VISIBLE_DEVICES:
            return (Action.CHOOSE_GPUS,)
        where, logical = line_of(callsite(self.request)), self.request.logical or ()
        before = "right after the import of TensorFlow" if self.made_at is None else f"above {line_of(self.made_at)}"
        limited = any(device.limit is not None for device in logical)
        return (*((Action.SET_LIMIT,) if limited else ()), Remedy(f"move {where} up, {before}"))

    @property
    def said(self) -> Said:
        where = line_of(callsite(self.request))
        first = "TensorFlow had initialised its devices already"
        if self.made_at is not None:
            first = f"{line_with_code(self.made_at)} had TensorFlow initialise its devices before"
        return Said(
            f"{where}: {call_text(self.request)} came too late and had no effect.",
            "TensorFlow initialises its devices at the first operation, tf.Variable, list_logical_devices or Keras "
            "model. At that moment it fixes growth, limits and visible devices. A later call raises RuntimeError; if "
            f"the script catches that, it goes on with the settings of before. {_move_up(where, self.made_at)}",
            GROWTH if self.of_growth else (),
            f"In process {self.pid}, {first}.",
        )


@rule(90)
def asked_too_late(state: State) -> Iterator[AskedTooLate]:
    """Find in each process the first call that came too late.

    A call for growth does not count if growth is as it requests all the same.
    """
    for pid, hooked in hooked_of_run(state):
        if late := next(_failed_calls(hooked, late=True), None):
            yield AskedTooLate(pid, late, devices_made_at(hooked))  # the process's details list all such calls


def _failed_calls(hooked: Hooked, *, late: bool) -> Iterator[events.Requested]:
    """Yield the calls that raised an error, because they came too *late* or for another reason.

    A call for growth is left out if growth is as it requests all the same, by the user or the environment.
    """
    for request in hooked.requested:
        as_asked = request.growth is not None and _growths(hooked) == {request.growth}
        if request.error and (CALLED_TOO_LATE in request.error) is late and not as_asked:
            yield request


def _growths(hooked: Hooked) -> set[bool | None]:
    """Return the growth settings of the process's GPUs; empty before it has made any devices."""
    return {effective.growth for name, effective in hooked.effective.items() if is_gpu(name)}


class GrowthDropped(Finding, frozen=True):
    """The script requested growth and then a limit, and TensorFlow dropped growth. ``limits`` are in bytes."""

    key = Key.SETTING

    remedies = (Action.GROWTH_ON,)

    growth: events.Requested
    limit: events.Requested
    limits: tuple[int, ...]

    @property
    def said(self) -> Said:
        limits = " and ".join(format_bytes(limit) for limit in self.limits)
        return Said(
            f"{line_of(callsite(self.growth))} asked for growth, {line_of(callsite(self.limit))} set a limit, and the "
            "limit silently dropped growth.",
            "TensorFlow's Python API has either growth or logical devices with a limit. As soon as one GPU has a "
            "logical device configuration, TensorFlow leaves growth out of its options for every GPU, without an "
            f"error or a warning. {_BOTH}",
            _BY_ENVIRONMENT,
            f"The pool takes all of its {limits} at the first allocation." if limits else "",
        )


@rule(100)
def growth_dropped(state: State) -> Iterator[GrowthDropped]:
    """Find processes whose script requested growth and later a limit, by which TensorFlow drops growth."""
    if state.run and state.run.settings.growth == "off":
        return
    for pid, hooked in hooked_of_run(state):
        if not hooked.requested or variable(state, pid, GROWTH_VARIABLE) == "false":
            continue  # then growth is off in any case
        settled = [device for device in run_devices(state) if device.pid == pid and device.effective]
        if not settled or any(device.growth is not False for device in settled):
            continue
        calls = [request for request in hooked.requested if request.error is None]
        limited = next(filter(limits_a_gpu, calls), None)
        growing = next((request for request in calls if request.growth), None)
        if limited is not None and growing is not None:
            limits = tuple(device.asked_limit for device in settled if device.asked_limit is not None)
            yield GrowthDropped(growing, limited, limits)


class CallRefused(Finding, frozen=True):
    """A call raised an error for a reason other than coming too late."""

    key = Key.SETTING

    request: events.Requested

    @property
    def beside_limit(self) -> bool:
        """Whether it asked for growth where a limit had been set."""
        return GROWTH_BESIDE_LIMIT in (self.request.error or "")

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        of_growth = self.request.call is events.Call.SET_MEMORY_GROWTH and self.request.growth is not False
        return (Action.GROWTH_ON if of_growth else Action.SHOW_PROCESS,)

    @property
    def said(self) -> Said:
        request, error = self.request, (self.request.error or "").rstrip(".")
        at, call = line_of(callsite(request)), call_text(request)
        if self.beside_limit:
            return Said(
                f"{at} asked for growth where a limit is set, which TensorFlow refuses.",
                f"{call} raised {error}. TensorFlow's Python API has either growth or a limit. {_BOTH}",
                _BY_ENVIRONMENT,
                "The pool takes its whole limit at the first allocation.",
            )
        headline = f"{at}: {call} had no effect: it raised {error}."
        if request.call is events.Call.SET_MEMORY_GROWTH and NO_SUCH_DEVICE in error:
            return Said(headline, "set_memory_growth needs one of the devices of list_physical_devices.", GROWTH)
        return Said(headline, "If the script catches the error, it goes on with the settings of before.")


@rule(130)
def refused(state: State) -> Iterator[CallRefused]:
    """Find in each process the first call that raised an error for a reason other than coming too late."""
    for _, hooked in hooked_of_run(state):
        if request := next(_failed_calls(hooked, late=False), None):
            yield CallRefused(request)


class GrowthDiffers(Finding, frozen=True):
    """TensorFlow could not initialise its devices at the line ``at``: growth was set only for the GPUs ``asked``."""

    key = Key.SETTING

    severity = Severity.ERROR
    remedies = Action.GROWTH_ON, Action.HIDE_OTHER_GPUS

    asked: tuple[str, ...]
    at: Callsite | None

    @property
    def said(self) -> Said:
        at = f" at {line_of(self.at)}" if self.at else ""
        only = f": the script set it for {', '.join(self.asked)} only" if self.asked else ""
        return Said(
            f"TensorFlow could not initialise its devices{at}, since memory growth differs between the GPUs{only}.",
            "Growth is one setting for all visible GPUs, though the script asks for it one by one. Set it for each "
            "of them, or make visible only those that the script uses. Until then every operation raises the same "
            "ValueError.",
            GROWTH,
        )


@rule(50)
def growth_differs(state: State) -> Iterator[GrowthDiffers]:
    """Find out whether growth was set for only some of the GPUs. TensorFlow then raises as it makes its devices."""
    attempts = [hooked.initialised for _, hooked in hooked_of_run(state) if hooked.initialised]
    refusal = next((attempt for attempt in attempts if GROWTH_DIFFERS in (attempt.error or "")), None)
    # An older hook does not report the attempts. Then the text that the script printed is the only sign.
    if refusal is None and (attempts or not printed(state, GROWTH_DIFFERS)):
        return
    growing = (request for _, hooked in hooked_of_run(state) for request in hooked.requested if request.growth)
    asked = {name for request in growing for name in request.devices or () if is_gpu(name)}
    at = Callsite(refusal.file, refusal.line) if refusal and refusal.file else None
    yield GrowthDiffers(tuple(sorted(asked)), at)


class GrowthOverridden(Finding, frozen=True):
    """The script switched growth on, or off, and it is the other way round; ``is_on`` is how it is.

    ``word`` is the value of the environment variable, ``None`` where it is not set or TensorFlow does not accept it.
    ``sure`` if it is known whether the variable is set.
    """

    key = Key.SETTING

    request: events.Requested
    is_on: bool
    word: str | None
    sure: bool

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        return (Action.GROWTH_ON if self.request.growth else Action.SET_GROWTH,)

    @property
    def said(self) -> Said:
        asked, is_on = ("on" if self.request.growth else "off"), ("on" if self.is_on else "off")
        if self.word is not None:
            by = f"{GROWTH_VARIABLE}={self.word} in the environment overrides it"
        elif self.sure:
            by = "the environment does not override it; the ConfigProto of a tf.compat.v1 session can"
        else:
            by = f"if {GROWTH_VARIABLE} is in the environment, it overrides the call (the process's details show it)"
        return Said(
            f"{line_of(callsite(self.request))} turned growth {asked}, but it is {is_on}: {by}.",
            f"{GROWTH_VARIABLE} overrides the script's own calls: if it is exactly true or false, TensorFlow ignores "
            "what set_memory_growth said. Unset it in the shell, the container or the job's settings.",
            (f"unset {GROWTH_VARIABLE}",),
        )


@rule(110)
def growth_overridden(state: State) -> Iterator[GrowthOverridden]:
    """Find processes whose script switched growth on, or off, and where TensorFlow does the opposite."""
    if state.run is None or state.run.settings.growth is not None:
        return
    for pid, hooked in hooked_of_run(state):
        calls = [request for request in hooked.requested if request.error is None]
        word = variable(state, pid, GROWTH_VARIABLE)
        if word != "false" and any(request.call is events.Call.SET_LOGICAL_DEVICE_CONFIGURATION for request in calls):
            continue  # a limit drops growth
        growths = [request for request in calls if request.growth is not None]
        asked = {name: request for request in growths for name in request.devices or ()}
        for effective in hooked.effective.values():
            last = asked.get(f"GPU:{effective.physical}") if is_gpu(effective.device) else None
            if last is None or effective.growth is None or effective.growth == last.growth:
                continue
            known = word if word in TAKEN else None
            yield GrowthOverridden(last, effective.growth, known, sure=bool(known or hooked.initialised))
            break


class GrowthWordIgnored(Finding, frozen=True):
    """``TF_FORCE_GPU_ALLOW_GROWTH`` has a value that TensorFlow does not accept; ``None`` where it is not known."""

    key = Key.SETTING

    remedies = (Action.SET_GROWTH,)

    word: str | None

    @property
    def said(self) -> Said:
        word = f"={self.word}" if self.word is not None else ""
        return Said(
            f"{GROWTH_VARIABLE}{word} is ignored: TensorFlow takes exactly true or false there.",
            "For 1, True, yes and the like TensorFlow logs an error on stderr and acts as if the variable were not "
            "set: growth stays as the script asks, off by default.",
            (f"export {GROWTH_VARIABLE}=true",),
        )


@rule(120)
def growth_word_ignored(state: State) -> Iterator[GrowthWordIgnored]:
    """Find out whether ``TF_FORCE_GPU_ALLOW_GROWTH`` has a value that TensorFlow does not accept."""
    for pid, _ in hooked_of_run(state):
        word = variable(state, pid, GROWTH_VARIABLE)
        if word is not None and word not in TAKEN and state.devices:
            yield GrowthWordIgnored(word)
            return
    # The text does not tell which process wrote it.
    if printed(state, GROWTH_VARIABLE_IGNORED):
        yield GrowthWordIgnored(ignored_word(output(state)))


SETTINGS_RULES = (growth_differs, asked_too_late, growth_dropped, growth_overridden, growth_word_ignored, refused)
"""All rules above. The summary at the end of a run uses them, too."""


_BY_ENVIRONMENT = (
    "import os",
    "",
    f'os.environ["{GROWTH_VARIABLE}"] = "true"  # before TensorFlow is imported',
    "import tensorflow as tf",
)


def _move_up(where: str, made_at: Callsite | None) -> str:
    imports = "right after the import of TensorFlow. Import the script's own modules that build a model after it."
    if made_at is None:
        return f"Move the call of {where} up, {imports} Which line made the devices is not known here."
    return f"Move the call of {where} up, before {line_with_code(made_at)}: best {imports}"


_BOTH = (
    "The environment variable below gives both, a limit and a pool that grows up to it, and so does growth on in "
    "tfmemtop."
)
