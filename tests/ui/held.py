"""A training whose windows are known: a small transformer. It is for the screens that show what holds the memory."""

from collections.abc import Sequence

from tests import pools
from tests.windows import BASE, Window
from tfmemtop import events
from tfmemtop.events.allocations import FOREVER

CALL = "StatefulPartitionedCall/"
BACK = f"{CALL}gradient_tape/functional_1/"
MIB = pools.MIB
BLOCKS = 4
NO_COMPILER = events.Unbuilt(events.Unbuildable.NO_COMPILER, detail="apt install g++")


def kernels() -> list[tuple[str, int]]:
    """Return the names of the model's variables with their sizes in bytes."""
    found = [("functional/embedding/embeddings", 12 * MIB)]
    for block in range(BLOCKS):
        found += [(f"functional/attention_{block}/query/kernel", 2 * MIB)]
        found += [(f"functional/mlp{block}up/kernel", 4 * MIB), (f"functional/mlp{block}down/kernel", 4 * MIB)]
    return [*found, ("functional/head/kernel", 12 * MIB)]


def step(number: int, batch: int = 16, leaked: int = 0, device: str = "GPU:0") -> Window:
    """Return the window of one step of the transformer on *batch* rows.

    *leaked* losses of earlier steps are still held, each with 256 bytes.
    """
    window = Window(device=device, number=number)
    for _, size in kernels():
        for _ in range(3):  # the kernel and its two slots
            window.has(size)
    for _ in range(leaked):
        window.has(256, f"{CALL}compile_loss/sparse_categorical_crossentropy/Mean", window=1)
    part = batch * MIB // 8

    def forward(layer: str, operation: str, size: int) -> int:
        name = f"{CALL}functional_1/{layer}_1/{operation}"
        return window.allocate(size, name, shape=[batch, size // 4 // batch], dtype="float32")

    def backward(layer: str, operation: str, size: int) -> int:
        name = f"{BACK}{layer}_1/{operation}"
        return window.allocate(size, name, shape=[batch, size // 4 // batch], dtype="float32")

    batch_in = window.allocate(part // 4, f"{CALL}IteratorGetNext", shape=[batch, 128], dtype="int32")
    kept = [(("embedding", part), forward("embedding", "Gather", part))]
    for block in range(BLOCKS):
        scores = forward(f"attention_{block}", "einsum/Einsum", part * 2)
        kept.append(((f"attention_{block}", part), forward(f"attention_{block}", "softmax/Softmax", part * 2)))
        window.free(scores)
        kept.append(((f"mlp{block}up", part * 3), forward(f"mlp{block}up", "Gelu", part * 3)))
        kept.append(((f"mlp{block}down", part), forward(f"mlp{block}down", "Tensordot", part)))
    logits = forward("head", "Tensordot", part * 5)
    scratch = window.allocate(part, f"{CALL}functional_1/head_1/Tensordot/MatMul", "temp")
    window.free(scratch)
    loss = window.allocate(part * 2, f"{CALL}compile_loss/sparse_categorical_crossentropy/LogSoftmax")
    given = [backward("head", "Tensordot/MatMul/MatMul_1", 12 * MIB)]
    window.free(loss, logits)
    for (layer, size), place in reversed(kept):
        given.append(backward(layer, "MatMul/MatMul_1", size))
        window.free(place)
    for name, size in kernels():
        square = window.allocate(size, f"{CALL}adam/{name.split('/')[1]}/Mul_1", shape=[size // 4096, 1024])
        window.free(square)
    window.free(*given, batch_in)
    return window


def census(device: str = "GPU:0", t: float = 5.0) -> events.Census:
    """Return a census with the model's variables and the optimizer's slots."""
    kinds = {"variables": 0, "optimizer": 0}
    found = []
    address = BASE  # as :func:`step` has them
    for name, size in kernels():
        shape = [size // 4096, 1024]
        found.append(events.Variable(name, "variables", shape, "float32", device, size, address))
        kinds["variables"] += size
        for slot in ("momentum", "velocity"):
            slot_name = f"adam/{name.replace('/', '_')}_{slot}"
            address += size
            found.append(events.Variable(slot_name, "optimizer", shape, "float32", device, size, address))
            kinds["optimizer"] += size
        address += size
    return events.Census(t=t, pid=100, kinds={device: kinds}, largest=found)


def lines() -> events.OperationLines:
    """Return the event with the lines of the script that make the layers."""
    found = []
    for block in range(BLOCKS):
        for line, (layer, operation) in enumerate(
            ((f"attention_{block}", "einsum/Einsum"), (f"mlp{block}up", "Gelu"), (f"mlp{block}down", "Tensordot")), 23
        ):
            code = f"x = layers.Dense(4 * width, activation='gelu', name='{layer}')(x)"
            name = f"functional_1/{layer}_1/{operation}"
            file = "/home/ada/projects/train.py"
            stack = (f"<module> {file}:61", f"build {file}:40", f"block {file}:{line}")
            found.append(events.OperationLine(name, file, line, code, stack))
    return events.OperationLines(t=5.5, pid=100, lines=found)


def chunks(window: Window, at: int) -> pools.Cut:
    """Return the window's chunks by address, as they were after event *at*, and 64 MiB of free memory after them."""
    found = []
    for holding, _, begin, end in window.spans:
        alive = begin <= at and (end > at or end == FOREVER)
        found.append((window.holdings[holding].size, alive))
    return [*found, (64 * MIB, False)]


def training(steps: Sequence[Window] | None = None, t: float = 30.0) -> list[events.Event]:
    """Return the events of a training with *steps* as its windows.

    The event of the first window is at 6 s. If there are several, that of the newest is 12 s before *t*. Times are
    seconds of the session.
    """
    steps = [step(1), step(2, 24), step(3, 24, leaked=40)] if steps is None else steps
    stream = pools.watched([chunks(steps[-1], steps[-1].peak_at), pools.cut_up(96 * MIB, 7)], t)
    begins = [6.0, *(t - 12.0 - 4 * (len(steps) - 2 - number) for number in range(len(steps) - 1))]
    why = [events.Opened.START, events.Opened.PEAK, events.Opened.INTERVAL]
    windows = [
        window.done(at, opened=why[min(number, 2)])
        for number, (window, at) in enumerate(zip(steps, begins, strict=True))
    ]
    return [*stream[:-3], census(), lines(), *windows, *stream[-3:]]
