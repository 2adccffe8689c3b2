"""Parses the text that TensorFlow writes in exceptions and to the terminal. The only place that depends on its wording.

The one exception is ``agent/failures.py`` with a few more phrases: the hook cannot import this file.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

CALLED_TOO_LATE = "cannot be modified after being initialized"
"""In the error of a call that configures the devices, if the devices exist already."""

GROWTH_BESIDE_LIMIT = "when virtual devices configured"
"""In the error of ``set_memory_growth`` if the GPU has a logical device configuration."""

NO_SUCH_DEVICE = "Unrecognized device"
"""In the error of a call with a device that is not one of ``list_physical_devices``."""

GROWTH_DIFFERS = "Memory growth cannot differ between GPU devices"
"""In the error that TensorFlow raises when it should make the devices."""

GROWTH_VARIABLE = "TF_FORCE_GPU_ALLOW_GROWTH"
GROWTH_VARIABLE_IGNORED = f"{GROWTH_VARIABLE} environment variable is set but could not be parsed"
XLA_RAN_OUT = "Out of memory while trying to allocate"
"""In the error of a function that XLA has compiled, where a buffer found no room."""

NO_START = "cudaSetDevice()", "implicit initialization", "Bad StatusOr access: RESOURCE_EXHAUSTED"
"""One of these is in the error if CUDA finds no memory on the card to begin. The last is a ``RuntimeError``."""

_OF_LIBRARIES = "no blas", "no dnn", "dnn library", "cublas", "cudnn", "autotuner"
_OF_CUDA = tuple(f"cuda_error_{kind}" for kind in ("out_of_memory", "unknown", "invalid_handle", "not_initialized"))
"""In the errors, in lower case, of CUDA and its libraries where they may have found no memory."""

NO_LIBRARIES = "Cannot dlopen some GPU libraries"
NO_CUDA = "failed call to cuInit"
"""In a message about CUDA's driver."""

_IGNORED_WORD = re.compile(re.escape(GROWTH_VARIABLE_IGNORED) + r': "([^"\n]{0,80})"')
_NOT_LOADED = re.compile(r"Could not load dynamic library '([^'\s]{1,80})'")

_RAN_OUT_ANYHOW = ("ran out of memory trying to allocate", "OOM when allocating", "failed to allocate memory")
_RAN_OUT = re.compile(
    r"Allocator \(([^)\s]{1,64})\) ran out of memory trying to allocate (?:"
    r"\S{1,20} \(rounded to (\d{1,18})\)\s?requested by op ([^\s:]{0,200})[\s:]"
    r"|(\d[\d.]{0,15})(B|[KMGT]iB) with freed_by_count=\d+\. The caller indicates that this is not a failure)"
)
_LINE = 400  # characters: a line about exhaustion is shorter, and may be split between two chunks of output
_UNITS = {unit: 1024**power for power, unit in enumerate(("B", "KiB", "MiB", "GiB", "TiB"))}

_TENSOR = re.compile(r"(?:with shape|of shape )\[([\d,]*)\](?: and type (\w{1,64}))?")
_BYTES = re.compile(r"allocat\w+ (\d+)(?: bytes|\.(?!\d)|$)")
_ABOUT = re.compile(r"allocat\w+ (\d[\d.]{0,15}?)(B|[KMGT]iB)\b")  # by XLA, with two decimals
_DEVICE = re.compile(
    r"(?<!device_)/(?:job:\S*?/)?device:([A-Z]{1,64}:\d{1,9})(?= by allocator)|on (?:device ordinal |GPU:)(\d{1,9})\b"
)
_OPERATION = re.compile(r"\[Op:(\w+)\]")
_NODE = re.compile(r"\{\{node ([^}]+)\}\}")

_SIZES = {"double": 8, "complex64": 8, "complex128": 16, "half": 2, "bool": 1, "float": 4, "string": 24}
_WIDTH = re.compile(r"(?:float|bfloat|q?u?int)(\d{1,4})")

_LARGEST, _DIGITS, _MOST_EXTENTS = 1 << 63, 20, 256


class Exhausted(NamedTuple):
    """A failed allocation; ``requested`` is bytes. A field is ``None`` if the message does not contain it."""

    device: str | None
    requested: int | None
    operation: str | None
    shape: list[int] | None = None
    dtype: str | None = None


def parse_exhausted(message: str) -> Exhausted:
    """Parse what the *message* of an exception contains about an allocation that failed."""
    device, tensor, plain = _DEVICE.search(message), _TENSOR.search(message), _BYTES.search(message)
    operation = _OPERATION.search(message) or _NODE.search(message)
    about = None if tensor or plain else _ABOUT.search(message)
    requested = _tensor_bytes(tensor[1], tensor[2]) if tensor else _product([1, plain[1]]) if plain else None
    if about:
        requested = _bytes(*about.groups())
    place = None if device is None else device[1] or f"GPU:{device[2]}"
    shape = _extents(tensor[1]) if tensor else None
    return Exhausted(place, requested, operation[1] if operation else None, shape, tensor[2] if tensor else None)


def failed_node(message: str) -> str | None:
    """Return the operation of a graph that an error's *message* is about."""
    node = _NODE.search(message)
    return node[1] if node else None


def _tensor_bytes(shape: str, dtype: str | None) -> int | None:
    width = _WIDTH.fullmatch(dtype or "")
    size = _SIZES.get(dtype or "", max(1, int(width[1]) // 8) if width else None)
    return None if size is None else _product([size, *filter(None, shape.split(","))])


def _bytes(number: str, unit: str) -> int | None:
    """Return *number* times *unit* in bytes; ``None`` if *number* is not a number, or the result exceeds 64 bits."""
    try:
        size = int(float(number) * _UNITS[unit])
    except ValueError:
        return None
    return size if size < _LARGEST else None


def _extents(shape: str) -> list[int] | None:
    extents = [_product([1, extent]) for extent in shape.split(",") if extent]
    known = [extent for extent in extents if extent is not None]
    return known if len(known) == len(extents) <= _MOST_EXTENTS else None


def _product(factors: list[int | str]) -> int | None:
    """Return the product of *factors*; ``None`` if it exceeds 64 bits. No program can have requested such a size."""
    product = 1
    for factor in factors:
        product *= int(factor) if len(str(factor)) < _DIGITS else _LARGEST
        if product >= _LARGEST:
            return None
    return product


class RanOut(NamedTuple):
    """A line about an allocator that found no room for ``size`` bytes.

    ``harmless``: the request was for scratch memory, which TensorFlow can do without. In this case TensorFlow names no
    operation, and writes the size with two decimals only. An operation need not have requested the memory, so
    ``operation`` may be ``None`` for a failure, too.
    """

    allocator: str
    size: int
    operation: str | None = None
    harmless: bool = False


def lines_of_exhaustion(before: str, text: str) -> Iterator[RanOut]:
    """Yield the lines about allocators that end in *text*. *before* is the output just before *text*."""
    before = before[-_LINE:]
    for found in _RAN_OUT.finditer(before + text):
        if found.end() <= len(before):
            continue
        allocator, size, operation, scratch, unit = found.groups()
        if size is not None:
            yield RanOut(allocator, int(size), operation or None)
        else:
            yield RanOut(allocator, _bytes(scratch, unit) or 0, harmless=True)


def tells_exhaustion(output: str) -> bool:
    """Return whether the script's *output* contains one of TensorFlow's messages that a pool ran out of memory."""
    return any(phrase in output for phrase in _RAN_OUT_ANYHOW)


def is_of_libraries(message: str) -> bool:
    """Return whether the *message* of an error is that of cuBLAS or cuDNN where they may have found no memory."""
    return any(words in message.lower() for words in _OF_LIBRARIES)


def is_of_cuda(message: str) -> bool:
    """Return whether the *message* of an error is such a one, or CUDA's own."""
    return is_of_libraries(message) or any(words in message.lower() for words in _OF_CUDA)


def ignored_word(output: str) -> str | None:
    """Return the value of ``TF_FORCE_GPU_ALLOW_GROWTH`` that TensorFlow ignores, by its first message in *output*."""
    found = _IGNORED_WORD.search(output)
    return found[1] if found else None


def libraries_not_loaded(output: str) -> list[str]:
    """Return the libraries that TensorFlow could not load, by its messages in *output*; each of them once."""
    return list(dict.fromkeys(_NOT_LOADED.findall(output)))
