"""What the native library tells of this process's allocators, once the monitor has handed it over."""

import time
from typing import TYPE_CHECKING, Any, Optional

from .devices import Device, asynchronous, growth_by_environment, uses_cpu_pool
from .native import CPU, GPU, PINNED, Native, NotTrusted, Taken

if TYPE_CHECKING:
    from .core import Agent

PINNED_NAME = "HOST:0"
"""The name we give the pool of pinned host memory, which is no device of TensorFlow's."""

_MAP_SHARE = 0.01  # of a core, for all maps of one pool together
_HURRY_SHARE = 0.1  # the same, while somebody goes from region to region: TensorFlow waits while one is read


class Pools:
    """Reads pools and their maps natively. All of it runs in the sampler's thread."""

    def __init__(self, agent: "Agent") -> None:
        self._agent = agent
        self._native: Optional[Native] = None
        self._refused = self._announced = False
        self._checked: dict[str, tuple[int, int]] = {}  # places by device
        self._wanted: list[tuple[Optional[str], Optional[int], float]] = []
        self._due: dict[tuple[str, Optional[int]], float] = {}
        self._rested: dict[str, float] = {}  # when a pool may be read again at the earliest
        self._mapless: set[str] = set()

    def obey(self, message: "dict[str, Any]") -> None:
        """Do what the monitor says: ``load`` a library, or read the ``maps`` it wants from now on.

        Raises:
            ValueError, LookupError, TypeError: *message* is none that a monitor of this version sends.
        """
        if message["do"] == "load" and self._native is None and not self._refused:
            try:
                self._native = Native(message["path"])
            except (NotTrusted, OSError) as error:
                self._refuse(str(error))
        elif message["do"] == "maps":
            self._wanted = [(device, region, float(pace)) for device, region, pace in message["wanted"]]
            # A new wish is answered as soon as the pool has rested.
            wishes = {(device, region) for device, region, _ in self._wanted}
            self._due = {key: due for key, due in self._due.items() if key in wishes or (None, key[1]) in wishes}

    def read(self, device: Device, handle: Any) -> Optional[Taken]:
        """A native reading of *device*, checked against the public one the first time; ``None`` without."""
        native = self._native
        if native is None:
            return None
        place = self._checked.get(device.name)
        if place is None:
            place = _place(device.name)
            read = device.read
            public = None if read is None or handle is None else lambda: read(handle)
            try:
                if not native.check(*place, public):
                    return None
            except NotTrusted as error:
                self._refuse(f"what it reads of {device.name} is not so: {error}")
                return None
            self._checked[device.name] = place
        return self._take(native, device.name, place)

    def pinned(self) -> Optional[Taken]:
        """A reading of the pool of pinned host memory, where TensorFlow has made one beside a GPU's."""
        native = self._native
        if native is None or not any(kind == GPU for kind, _ in self._checked.values()):
            return None
        try:
            if PINNED_NAME not in self._checked and not native.check(PINNED, 0, None):
                return None
        except NotTrusted as error:
            self._refuse(f"what it reads of the pinned host memory is not so: {error}")
            return None
        self._checked[PINNED_NAME] = (PINNED, 0)
        return self._take(native, PINNED_NAME, (PINNED, 0))

    def of_sessions(self, growth: Optional[bool], known: "set[str]") -> "list[Device]":
        """Devices of TF1-style sessions beyond those *known*; only the allocators themselves tell of them."""
        native = self._native
        if native is None:
            return []
        names = [f"GPU:{index}" for index in range(native.gpus())] + (["CPU:0"] if uses_cpu_pool() else [])
        devices = []
        for name in names:
            taken = None if name in known else native.take(*_place(name))
            if taken is not None:
                devices.append(
                    Device(
                        name=name,
                        allocator_name=taken.name,
                        physical=taken.physical,
                        growth=growth_by_environment(growth) if name != "CPU:0" else True,
                        limit=taken.reading.limit,
                        allocator="cuda_malloc_async" if asynchronous() and name != "CPU:0" else "bfc",
                        read=None,
                    )
                )
        return devices

    def settle(self) -> None:
        """All devices have been tried: what was loaded is trusted, and starts to watch between the readings."""
        if self._native is not None and not self._announced:
            self._announced = True
            try:
                self._native.start_sampler()
            except NotTrusted as error:
                self._refuse(str(error))
                return
            self._agent.send("probe", state="loaded")

    def stop(self) -> None:
        """Stop watching."""
        if self._native is not None and self._announced:
            self._native.stop_sampler()

    def next_map(self) -> Optional[float]:
        """When, by the monotonic clock, the next map is due; ``None`` while none is wanted."""
        return min(map(self._when, self._wishes()), default=None)

    def read_maps(self) -> None:
        """Read the maps that are due."""
        for key, pace in self._wishes().items():
            if self._native is not None and self._when(key) <= time.monotonic():
                self._due[key] = time.monotonic() + pace  # should it fail
                self._due[key] = time.monotonic() + self._read_map(self._native, *key, pace)

    def _when(self, key: "tuple[str, Optional[int]]") -> float:
        return max(self._due.get(key, 0.0), self._rested.get(key[0], 0.0))

    def _wishes(self) -> "dict[tuple[str, Optional[int]], float]":
        """Paces by device and region; the shortest, where one is wanted by name and with all others."""
        wishes: dict[tuple[str, Optional[int]], float] = {}
        if self._native is not None:
            for wanted, region, pace in self._wanted:
                for name in self._checked:
                    if wanted in (None, name) and name not in self._mapless:
                        wishes[name, region] = min(pace, wishes.get((name, region), pace))
        return wishes

    def _read_map(self, native: Native, device: str, region: Optional[int], pace: float) -> float:
        """Read one map; the seconds to leave until the next."""
        began = time.perf_counter()
        found = native.map(*self._checked[device], region, self._about_to_make_much)
        cost = time.perf_counter() - began
        self._rested[device] = time.monotonic() + cost / _HURRY_SHARE
        if found is None:
            self._mapless.add(device)
            missing = "cuda_malloc_async, CUDA's own pool, tells nobody how it is cut up" if asynchronous() else None
            self._agent.send(
                "memory_map", device=device, missing=missing or "this allocator is not BFC, which alone has a map"
            )
            return pace
        pace = max(pace, cost / _MAP_SHARE * len(self._wishes()))
        self._agent.offer("memory_map", device=device, cost_us=int(cost * 1e6), pace_s=round(pace, 3), **found)
        return pace

    def _about_to_make_much(self) -> None:
        self._agent.collector.off(much=True)

    def _take(self, native: Native, name: str, place: "tuple[int, int]") -> Optional[Taken]:
        taken = native.take(*place)
        if taken is not None:
            for growth in taken.growths:
                self._agent.send("pool_growth", device=name, **growth._asdict())
        return taken

    def _refuse(self, why: str) -> None:
        """Never call the library again."""
        if self._native is not None:
            self._native.stop_sampler()
        self._native = None
        self._refused = True
        self._checked.clear()
        self._agent.send("probe", state="failed", text=f"the probe is not used in this process: {why}")


def _place(device: str) -> "tuple[int, int]":
    return (CPU, 0) if device == "CPU:0" else (GPU, int(device.partition(":")[2]))
