"""What a layer has read, computed from the shapes of its result and of its kernel. Pure."""

from collections import defaultdict
from collections.abc import Container, Iterator
from itertools import product
from math import prod

_STRIDES = 1, 2, 3, 4  # strides of a convolution that are tried; its window's own size is tried too
_MOST = 4096  # images that are tried for each stride
_ITEMS = {"float32": 4, "float64": 8, "half": 2, "float16": 2, "bfloat16": 2}
_TOKENS = ("int64", 8), ("int32", 4)
_CONVERTED = ("uint8", 1), ("", 2), ("", 4), ("", 8)

Shape = tuple[int, ...]


def cast(result: Shape, dtype: str) -> Iterator[tuple[Shape, str, int]]:
    """Yield what may have been converted to *dtype*: its shape, its type, and the bytes of one number."""
    for read, item in _CONVERTED:
        if item != _ITEMS.get(dtype):
            yield result, read, item


def swapped(result: Shape, dtype: str) -> Iterator[tuple[Shape, str, int]]:
    """Yield the same for sequences whose result has time as its first dimension: what was read has it second."""
    if dtype in _ITEMS and len(result) == 3:
        yield (result[1], result[0], result[2]), dtype, _ITEMS[dtype]


def tokens(result: Shape) -> Iterator[tuple[Shape, str, int]]:
    """Yield the same for the tokens that an embedding may have looked up."""
    for dtype, item in _TOKENS:
        yield result[:-1], dtype, item


def read_by_product(result: Shape, kernel: Shape, dtype: str) -> Iterator[tuple[Shape, str, int]]:
    """Yield the same for what was multiplied by a *kernel* of two dimensions."""
    for read, item in _read_types(dtype):
        yield (*result[:-1], kernel[0]), read, item


def images(
    result: Shape, kernel: Shape, dtype: str, sizes: Container[int], made: Container[int]
) -> Iterator[tuple[int, Shape | None, str]]:
    """Yield bytes, shape and type of the images that a convolution with *kernel* may have read, if among *sizes*.

    Stride and padding are not known, so several sizes in bytes are possible. Nothing is yielded if more than one of
    them is among *sizes*, or if one of them is among *made*, the sizes that were made before. The shape is ``None`` if
    several shapes are possible and not exactly one of them is square.
    """
    *window, channels, results = kernel
    rows, *inner = result
    if inner[-1] == results:
        sides = inner[:-1]
    elif inner[0] == results:
        sides = inner[1:]
    else:
        return
    if prod(2 * size for size in window) > _MOST:
        return
    possible: dict[int, set[Shape]] = defaultdict(set)  # by the number of pixels
    for stride in {*_STRIDES, window[0]}:
        firsts = [(side - 1) * stride + 1 for side in sides]
        lengths = [range(at, at + size + stride - 1) for at, size in zip(firsts, window, strict=True)]
        for image in product(*lengths):
            possible[prod(image)].add(image)
    for read, item in _read_types(dtype):
        of_pixels = {pixels: rows * pixels * channels * item for pixels in possible}
        if any(size in made for size in of_pixels.values()):
            return
        fitting = [pixels for pixels, size in of_pixels.items() if size in sizes]
        if len(fitting) == 1:
            (pixels,) = fitting
            square = {image for image in possible[pixels] if len(set(image)) == 1}
            likeliest = square or possible[pixels]
            shape = (rows, *next(iter(likeliest)), channels) if len(likeliest) == 1 else None
            yield rows * pixels * channels * item, shape, read


def _read_types(dtype: str) -> list[tuple[str, int]]:
    """Return the types that a result of *dtype* may be computed from, each with the bytes of one number.

    A layer may read single precision and compute in half precision.
    """
    if dtype not in _ITEMS:
        return []
    return [(dtype, _ITEMS[dtype])] + ([("float32", 4)] if _ITEMS[dtype] < 4 else [])
