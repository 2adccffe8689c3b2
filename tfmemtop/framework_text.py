"""Parses what JAX, PyTorch and CuPy write when they run out of GPU memory. The only place that knows their wording."""

import re

import msgspec

from tfmemtop.frameworks import FrameworkName
from tfmemtop.units import NotASize, SizeFault, parse_size

_TORCH = re.compile(
    r"(?:CUDA|HIP) out of memory\. Tried to allocate (?P<requested>[\d.]+ \w+)(?:(?! If reserved)[^\r\n])*"
)
# TensorFlow's XLA writes the same, but for the class of the exception.
_JAX = re.compile(
    r"(?:Xla|Jax)RuntimeError: RESOURCE_EXHAUSTED: (?:Out of memory (?:while trying to allocate|allocating)|"
    r"Failed to allocate request for) (?P<requested>[\d.]+ ?\w+)"
)
_CUPY = re.compile(
    r"OutOfMemoryError: Out of memory allocating (?P<requested>[\d,]+ bytes) "
    r"\(allocated so far: (?P<allocated>[\d,]+ bytes)"
)
_MESSAGES = {FrameworkName.PYTORCH: _TORCH, FrameworkName.JAX: _JAX, FrameworkName.CUPY: _CUPY}

_SIZE = r"([\d.]+ (?:bytes|\w+B))"
_FIGURES = {
    name: re.compile(pattern.replace("SIZE", _SIZE))
    for name, pattern in {
        "card": r"total capac\w+ of SIZE",
        "free": r"of which SIZE is free",
        "process": r"this process has SIZE memory in use",
        "allowed": r"SIZE allowed;",
        "allocated": r"Of the allocated memory SIZE is allocated by PyTorch",
        "cached": r"SIZE is reserved by PyTorch but unallocated",
    }.items()
}


class FrameworkExhausted(msgspec.Struct, frozen=True):
    """A failed allocation of ``framework``. Sizes are bytes.

    They are ``None`` where the text does not contain them: only PyTorch's has most. ``card`` is the whole card,
    ``process`` what the whole process had of it, ``allowed`` the framework's limit. ``cached`` is the free part of its
    pool. ``message`` is what was parsed.
    """

    framework: FrameworkName
    message: str
    requested: int | None
    card: int | None = None
    free: int | None = None
    process: int | None = None
    allowed: int | None = None
    allocated: int | None = None
    cached: int | None = None


def parse_framework_exhausted(text: str) -> FrameworkExhausted | None:
    """Return the last failed allocation that *text* reports; ``None`` if it reports none."""
    found = [(match, name) for name, pattern in _MESSAGES.items() for match in pattern.finditer(text)]
    if not found:
        return None
    match, name = max(found, key=lambda each: each[0].start())
    figures = {key: pattern.search(match[0]) for key, pattern in _FIGURES.items()}
    sizes = {key: _bytes(figure[1]) for key, figure in figures.items() if figure}
    if "allocated" in match.groupdict():
        sizes["allocated"] = _bytes(match["allocated"])
    return FrameworkExhausted(name, match[0].strip(), _bytes(match["requested"]), **sizes)


def _bytes(text: str) -> int | None:
    """Return the bytes of ``1.50 GiB``, ``1,536 bytes`` or ``1536bytes``; ``None`` for another text."""
    try:
        return parse_size(text.replace(",", "").replace("bytes", "").strip().rstrip("."))
    except NotASize as error:
        return 0 if error.fault is SizeFault.ZERO else None
