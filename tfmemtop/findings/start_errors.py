"""The error texts for a script or an engine that could not be started, or has not ended, in one line. Pure."""

from tfmemtop.events.recording.errors import RecordingError, Trouble, recording_text
from tfmemtop.events.unstarted import Unstarted, Why
from tfmemtop.limits import HostOwner, TooLittle, TooMuch, Whole
from tfmemtop.settings import NoSuchGpu
from tfmemtop.units import NotASize, SizeFault, format_bytes

_SIZES = {
    SizeFault.NO_SIZE: "{!r} is not a size; give one such as 4G, 3500M or 50%",
    SizeFault.NO_SHARE: "{!r}: a percentage must be above 0 and at most 100",
    SizeFault.NO_WHOLE: "{!r}: the size of the whole is not known here; give a size such as 4G",
    SizeFault.ZERO: "{!r}: a size must be above 0",
}


def unusable(error: Exception) -> str:
    """Return what is wrong, and what to give instead. For errors of other types, return their own text."""
    match error:
        case NotASize():
            return _SIZES[error.fault].format(error.text)
        case TooMuch():
            size = error.text or format_bytes(error.size)
            return f"{size} is more than {_owner(error.whole)} has, {format_bytes(error.whole.size)}"
        case TooLittle():
            return f"{error.text} is less than 1 MiB, the smallest that TensorFlow can be given"
        case RecordingError():
            return recording_text(error)
        case NoSuchGpu(index=None):
            return "cuda_malloc_async needs a GPU, and this machine has none"
        case NoSuchGpu():
            return f"there is no GPU {error.index}: this machine has {error.count or 'none'}"
    return str(error)


def _owner(whole: Whole) -> str:
    match whole.owner:
        case None:
            return "the GPU"
        case int():
            return f"GPU {whole.owner}"
        case HostOwner.CGROUP:
            return "this control group"
    return f"this {whole.owner.value}"


_TEXTS = {
    Why.NO_COMMAND: "no command to start",
    Why.NOT_FOUND: "{name}: command not found",
    Why.NO_FILE: "{name}: no such file",
    Why.IS_DIRECTORY: "{name}: is a directory",
    Why.NOT_EXECUTABLE: "{name}: not executable",
    Why.NO_INTERPRETER: "{name}: the interpreter named in its first line is not there",
    Why.SYSTEM: "{name}: {detail}",
    Why.SPAWN: "{name}: cannot be started: {detail}",
    Why.NO_PROCESS: "there is no process {name}",
    Why.DRIVER_SILENT: "the NVIDIA driver does not answer: the settings cannot be checked",
    Why.METRICS_ADDRESS: "no metrics at {name}: {detail}",
    Why.METRICS_FILE: "no metrics in {name}: {detail}",
    Why.METRICS_NO_FILE: "no metrics in {name}: it is not a regular file",
    Why.REFUSED: "{detail}",
    Why.ENGINE_FAILED: "the engine cannot be started: {detail}",
}

HELD_BY_DRIVER = "the NVIDIA driver does not answer; the kernel cannot end this process before it answers"
"""A command prints this when it should end while one of its threads is in the driver."""


def crashed(signal: str) -> str:
    """Return the line for the screen of a session that only watches, if a library ends its process by *signal*."""
    return f"ended by {signal}: a library crashed, perhaps the NVIDIA driver's. The watched processes go on."


def start_text(unstarted: Unstarted) -> str:
    """Return why the script was not started, as one line without a full stop. It contains text from outside."""
    if unstarted.why in _TEXTS:
        text = _TEXTS[unstarted.why].format(name=unstarted.name, detail=unstarted.detail or "it ended")
    else:
        text = unusable(_error(unstarted))
    if unstarted.output_path is not None:
        text += f"; if the command runs, what it prints is in {unstarted.output_path}"
    return text


def _error(unstarted: Unstarted) -> Exception:
    """Return the error that *unstarted* was made of."""
    match unstarted.why:
        case Why.TOO_MUCH:
            whole = Whole(unstarted.whole, unstarted.index if unstarted.owner is None else unstarted.owner)
            return TooMuch(unstarted.size or 0, whole, unstarted.name)
        case Why.NO_SUCH_GPU:
            return NoSuchGpu(unstarted.index, unstarted.count or 0)
        case _:
            trouble = next((one for one in Trouble if one.value == unstarted.of), Trouble.UNWRITABLE)
            return RecordingError(trouble, unstarted.name, unstarted.detail, unstarted.count)
