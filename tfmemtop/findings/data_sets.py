"""The cause that a data set keeps elements. Pure."""

from tfmemtop.events.census import DatasetBuffer
from tfmemtop.events.machine import is_cpu
from tfmemtop.findings.cause import Cause, Key, fitting
from tfmemtop.findings.names import spot, tensor_text
from tfmemtop.findings.remedy import Action
from tfmemtop.findings.scene import MANY, Scene
from tfmemtop.state.attribution import Kind
from tfmemtop.state.holders import Part
from tfmemtop.tensorflow_text import failed_node
from tfmemtop.units import format_bytes

_CACHE, _INTERLEAVE = "cache", "interleave"
_BUFFERS = {
    "shuffle": Action.SMALLER_BUFFER,
    _CACHE: Action.CACHE_IN_FILE,
    "prefetch": Action.PREFETCH_LESS,
    _INTERLEAVE: Action.INTERLEAVE_LESS,
}
"""The kinds of data sets that keep elements, with what helps."""

_MAKERS = {"shuffle": "ShuffleDataset", "cache": "CacheDataset"}
"""The names of TensorFlow's operations that make them. Keras itself prefetches some, so that says little."""


def dataset_buffer(scene: Scene) -> Cause | None:
    """A data set keeps elements: to shuffle them, or to have them again.

    Its elements are known by their allocations, which are many and alike. On a GPU they lie in the host's memory.
    """
    kind = _buffering(scene)
    if kind is None or not is_cpu(scene.stock.device):
        return None
    look = scene.stock.look or scene.stock.census
    told = [one for one in (look.buffers if look else ()) if one.kind == kind and one.elements and one.each]
    largest = max(told, key=lambda one: (one.elements or 0) * (one.each or 0), default=None)
    room = (largest.elements or 0) * (largest.each or 0) if largest else 0
    each, count, size, most = _elements(scene)
    if largest is not None and (size < room or not _alike(largest, each)):
        each, size = largest.each or 0, min(room, scene.stock.rest - _of_step(scene))
    if not each or not scene.matters(size):
        return None
    made = f", made at {spot(most.line.file, most.line.line)}" if most and most.line and most.line.file else ""
    of = f"up to {largest.elements:,} elements of {format_bytes(each)}" if largest else ""
    if largest is not None and size // each < (largest.elements or 0):
        of = f"~{size // each:,} of at most {largest.elements:,} elements"
    what = f"The {'cache' if kind == _CACHE else f'{kind} buffer'} of a data set keeps "
    what += of or f"~{size // each:,} elements of {format_bytes(each)}"
    if kind == _INTERLEAVE and most is not None:
        of = tensor_text(list(most.shape or ()), most.dtype)
        what = f"The interleave of a data set keeps {count:,} tensors, such as {of}, of its open inputs"
        failure = scene.hooked.failure
        once = most.count == count and "while" not in most.operation
        if failure and once and failed_node(failure.error.message) == most.operation:
            what = f"An interleave has {count:,} inputs open, with {of} of each"  # its function makes one of each
    whole = f": {scene.sized(size, '~')}."
    return Cause(
        Key.DATASET_BUFFER,
        fitting(f"{what}{made}{whole}", f"{what}{whole}", room=scene.room),
        f"tf.data {kind}",
        size,
        count or size // each,
        (_BUFFERS[kind],),
    )


def _elements(scene: Scene) -> tuple[int, int, int, Part | None]:
    """Return what may be a data set's elements, by their allocations: bytes of one, their number, bytes of all.

    The last is the largest part of them.
    """
    kinds = (Kind.ACTIVATIONS, Kind.UNKNOWN, Kind.TENSORS, Kind.INPUT)
    alike = (part for part in scene.stock.parts if part.shape and part.kind in kinds and not part.python_name)
    parts = [part for part in alike if part.count >= MANY]
    if not parts:
        return 0, 0, 0, None
    most = max(parts, key=lambda part: part.bytes)
    each = most.requested // most.count
    same = [part for part in parts if part.requested // part.count == each]
    return each, sum(part.count for part in same), min(sum(part.bytes for part in same), scene.stock.rest), most


def _of_step(scene: Scene) -> int:
    """Return the bytes of recorded results of the model's layers, which are no elements of a data set."""
    layers = {part.layer for part in scene.stock.parts if part.kind is Kind.VARIABLES and part.layer}
    results = (part for part in scene.stock.parts if part.kind in (Kind.ACTIVATIONS, Kind.GRADIENTS))
    return sum(part.bytes for part in results if part.layer in layers)


def _buffering(scene: Scene) -> str | None:
    """Return which kind of buffer a data set of the script's has: the first that can be large; ``None`` without one."""
    failure = scene.hooked.failure
    if failure is not None and "InterleaveDataset" in failure.error.message:
        return _INTERLEAVE  # an operation of its function failed
    look = scene.stock.look or scene.stock.census
    told = list(look.buffers) if look else []
    known = {one.kind for one in told if one.kind != "prefetch" or (one.elements or 0) >= MANY}
    known |= {kind for kind, name in _MAKERS.items() if any(name in each for each in scene.stock.operations)}
    each, _, size, _ = _elements(scene)
    return next((kind for kind in _BUFFERS if kind in known and size <= 2 * _room(kind, told, each)), None)


def _room(kind: str, told: list[DatasetBuffer], each: int) -> float:
    """Return how many bytes of elements of *each* bytes the buffers of a *kind* can keep: infinite if not known."""
    alike = [one for one in told if one.kind == kind and _alike(one, each)]
    return sum((one.elements or 0) * (one.each or 0) for one in alike) or float("inf")


def _alike(buffer: DatasetBuffer, each: int) -> bool:
    """Return whether allocations of *each* bytes may be elements of *buffer*, or the largest of their tensors."""
    return (buffer.each or 0) / 2 <= each <= (buffer.each or 0)
