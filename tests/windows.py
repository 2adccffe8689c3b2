"""Windows of allocations for tests: a step of a small model, made of its allocations and frees."""

from dataclasses import dataclass, field

from tfmemtop import events
from tfmemtop.events.allocations import FOREVER, WindowAllocations, pack

ROUND = 256
"""BFC rounds the size of a chunk up to a multiple of so many bytes."""
BASE = 0x7F00_0000_0000
"""The address of a window's first chunk."""


@dataclass
class Window:
    """Builds a ``Holders`` event from allocations and frees, in the order of the calls."""

    pid: int = 100
    device: str = "GPU:0"
    number: int = 1
    names: list[str] = field(default_factory=list)
    holdings: list[events.Holding] = field(default_factory=list)
    spans: list[tuple[int, int, int, int]] = field(default_factory=list)
    event: int = 0
    in_use: int = 0
    before: int = 0
    peak: int = 0
    peak_at: int = -1
    top: int = BASE

    def has(self, requested: int, operation: str = "", window: int = 0) -> int:
        """Add a chunk that was allocated before the window. Return its place among the spans."""
        place = self._span(requested, operation, "", None, "", -1, window)
        self.before = self.in_use
        self.peak = max(self.peak, self.in_use)
        return place

    def allocate(
        self,
        requested: int,
        operation: str = "",
        region: str = "output",
        shape: list[int] | None = None,
        dtype: str = "",
    ) -> int:
        """Add an allocation. Return its place among the spans."""
        place = self._span(requested, operation, region, shape, dtype, self.event, self.number)
        if self.in_use > self.peak:
            self.peak, self.peak_at = self.in_use, self.event
        self.event += 1
        return place

    def free(self, *places: int) -> None:
        for place in places:
            holding, address, begin, _ = self.spans[place]
            self.spans[place] = holding, address, begin, self.event
            self.in_use -= self.holdings[holding].size
            self.event += 1

    def done(self, t: float = 10.0, unknown: int = 0, opened: events.Opened = events.Opened.INTERVAL) -> events.Holders:
        """Return the event. *unknown* bytes of its peak are in no span."""
        return events.Holders(
            t=t,
            pid=self.pid,
            device=self.device,
            window=self.number,
            opened=opened,
            closed=events.Closed.STEP,
            began=t - 0.3,
            ended=t - 0.1,
            function="train_step",
            steps=1,
            before=self.before,
            peak=self.peak + unknown,
            peak_at=self.peak_at,
            packed=pack(self.content()),
        )

    def content(self) -> WindowAllocations:
        """Return the allocations as an event has them."""
        return WindowAllocations(
            names=self.names,
            kinds=self.holdings,
            holdings=[span[0] for span in self.spans],
            addresses=[span[1] for span in self.spans],
            begins=[span[2] for span in self.spans],
            ends=[span[3] for span in self.spans],
            times=[100] * self.event,
        )

    def _span(
        self, requested: int, operation: str, region: str, shape: list[int] | None, dtype: str, begin: int, window: int
    ) -> int:
        number = None
        if operation:
            if operation not in self.names:
                self.names.append(operation)
            number = self.names.index(operation)
        size = -(-requested // ROUND) * ROUND
        holding = events.Holding(number, shape, dtype, region, requested, size, window)
        if holding not in self.holdings:
            self.holdings.append(holding)
        self.top += size
        self.spans.append((self.holdings.index(holding), self.top - size, begin, FOREVER))
        self.in_use += size
        return len(self.spans) - 1


CALL = "StatefulPartitionedCall/"
BACK = f"{CALL}gradient_tape/sequential_1/"
SIZE = 4 * 1024 * 1024
"""The bytes of a kernel of 1024 × 1024, and of 1024 rows of activations."""


def variable(name: str, kind: str = "variables", device: str = "GPU:0", address: int = 0) -> events.Variable:
    """Return a kernel, or an optimizer's slot of a kernel."""
    return events.Variable(name, kind, [1024, 1024], "float32", device, SIZE, address)


def census(device: str = "GPU:0", t: float = 5.0) -> events.Census:
    """Return the census with the variables of the model of :func:`step`."""
    chunks = iter(range(BASE, BASE + 6 * SIZE, SIZE))  # as :func:`step` has them
    variables = [variable(f"sequential/{layer}/kernel", "variables", device, next(chunks)) for layer in ("up", "down")]
    slots = [
        variable(f"adam/sequential_{layer}_kernel_{slot}", "optimizer", device, next(chunks))
        for layer in ("up", "down")
        for slot in ("momentum", "velocity")
    ]
    return events.Census(
        t=t, pid=100, kinds={device: {"variables": 2 * SIZE, "optimizer": 4 * SIZE}}, largest=variables + slots
    )


def step(number: int = 1, leaked: int = 0, device: str = "GPU:0", rows: int = 1024) -> Window:
    """Return a step of two dense layers of 1024 × 1024 on a batch of *rows*. *leaked* earlier losses were not freed."""
    window = Window(device=device, number=number)
    shape, size = [rows, 1024], rows * 4096
    for _ in range(6):
        window.has(SIZE)
    for _ in range(leaked):
        window.has(ROUND, f"{CALL}compile_loss/mse/Mean", window=number - 1 or 1)
    x = window.allocate(size, f"{CALL}IteratorGetNext", shape=shape, dtype="float32")
    up = window.allocate(size, f"{CALL}sequential_1/up_1/Relu", shape=shape, dtype="float32")
    scaled = window.allocate(size, f"{CALL}sequential_1/down_1/mul", shape=shape, dtype="float32")
    down = window.allocate(size, f"{CALL}sequential_1/down_1/BiasAdd", shape=shape, dtype="float32")
    window.free(scaled)
    loss = window.allocate(4, f"{CALL}compile_loss/mse/Mean", shape=[], dtype="float32")
    d_down = window.allocate(size, f"{CALL}gradient_tape/compile_loss/mse/Mul", shape=shape, dtype="float32")
    square = [1024, 1024]
    w_down = window.allocate(SIZE, f"{BACK}down_1/MatMul/MatMul_1", shape=square, dtype="float32")
    d_up = window.allocate(size, f"{BACK}down_1/MatMul/MatMul", shape=shape, dtype="float32")
    window.free(down, d_down)
    w_up = window.allocate(SIZE, f"{BACK}up_1/MatMul/MatMul", shape=square, dtype="float32")
    scratch = [window.allocate(SIZE, f"{CALL}adam/{name}", shape=square, dtype="float32") for name in ("Mul_1", "Sqrt")]
    window.free(d_up, up, x, *scratch, w_up, w_down)
    if not leaked:
        window.free(loss)
    return window
