"""The error texts for a script or an engine that could not be started, or has not ended, in one line. Pure."""

from tfmemtop.events.recording.errors import RecordingError
from tfmemtop.limits import HostOwner, TooFewGpus, TooLittle, TooMuch, Whole
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
            return error.text
        case OSError() if error.filename:
            return f"{error.filename}: {error.strerror}"
        case NoSuchGpu(index=None):
            return "cuda_malloc_async needs a GPU, and this machine has none"
        case TooFewGpus():
            there = (
                f"are only {error.count} GPUs" if error.count > 1 else f"is {'only one' if error.count else 'no'} GPU"
            )
            return f"{error.wanted}: there {there} whose free memory is known"
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
