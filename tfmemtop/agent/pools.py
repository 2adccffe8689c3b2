"""Reads this process's pools: in place from the first reading on, and with the native library once it is loaded.

Maps are read in place only, since that takes no lock of TensorFlow's: the regions and chunks of a pool are copied to a
file in the session's folder, from which the engine makes maps.
"""

from time import monotonic, thread_time
from typing import Any, Optional

from .collector import MUCH, Collector
from .devices import Device, gpu_count, growth_by_environment, uses_cpu_pool
from .direct import Direct, NoCopy
from .memory import Sheet
from .messenger import Messenger, tensorflow_folder
from .native import Native
from .trust import GPU, PINNED_NAME, NotTrusted, PublicReader, Taken
from .windows import Windows

LIVE, OUT_OF_MEMORY = "live", "out_of_memory"
"""The moments at which pools are copied. Each has a file of its own, so that neither overwrites the other."""


class ChunkCopies:
    """Makes copies, and reports them to the engine. All of it runs in the sampler's thread."""

    def __init__(self, messenger: Messenger, folder: Optional[str]) -> None:
        """*folder* is the session's; ``None`` if it is not known in this process."""
        self._messenger = messenger
        self.folder = folder
        self._sheets: dict[tuple[str, str], Sheet] = {}

    def make(
        self, direct: Direct, device: str, place: "tuple[int, int]", moment: str
    ) -> "tuple[Optional[dict[str, Any]], float]":
        """Copy the regions and chunks of a pool; return what is to be told of the copy, and its cost in seconds.

        The first is ``None`` if the pool changed during the copy.

        Raises:
            NoCopy: there is no folder or no room for the copy, or the pool has too many chunks.
        """
        if self.folder is None:
            raise NoCopy("no_folder")
        sheet = self._sheets.get((device, moment))
        if sheet is None:
            path = f"{self.folder}/{self._messenger.pid}.{device}.{moment}.chunks"
            sheet = self._sheets[device, moment] = Sheet(path)
        began = thread_time()
        try:
            copied = direct.cut(*place, sheet)
        except OSError as error:
            raise NoCopy("no_room", None, error.strerror or str(error)) from None
        cost = thread_time() - began
        return copied and {"device": device, "moment": moment, "cost_us": int(cost * 1e6), **copied}, cost

    def tell(self, copied: "dict[str, Any]", wanted: "list[list[Any]]") -> None:
        """Report a copy.

        *wanted* lists pairs: a region's address, ``None`` for all regions, and the seconds until its next map.
        """
        # A report of the moment when memory ran out must arrive. A live one may be dropped, as a newer one follows.
        say = self._messenger.offer if copied["moment"] == LIVE else self._messenger.send
        say("chunks", wanted=wanted, **copied)

    def close(self) -> None:
        """Release the memory; the files stay, for the engine to read."""
        for sheet in self._sheets.values():
            sheet.close()


_MAP_SHARE = 0.01  # of a core, for all maps of one pool together
_HURRY_SHARE = 0.1  # the same, while a user goes from region to region
_CONDENSE_S = 2.5e-6  # the engine's time for each chunk of a map
_CONDENSE_SHARE = 0.05  # of a core, for the engine's part

_Key = tuple[str, Optional[int]]  # a device and a region


class Pools:
    """Reads pools and their maps. All of it runs in the sampler's thread."""

    def __init__(
        self, messenger: Messenger, collector: Collector, copies: ChunkCopies, windows: Windows, look: bool
    ) -> None:
        """*windows* are opened with the library. With *look*, pools are read in place."""
        self._messenger = messenger
        self._collector = collector
        self._copies = copies
        self._windows = windows
        self._look = look
        self._native: Optional[Native] = None
        self.direct: Optional[Direct] = None
        """The reader in place; ``None`` before the first reading, and where it is not trusted."""
        self._handed: Optional[tuple[str, int]] = None  # a library's path and checksum
        self._refused = self._announced = self._direct_announced = False
        self._wanted: list[tuple[Optional[str], Optional[int], float]] = []
        self._due: dict[_Key, float] = {}
        self._rested: dict[str, float] = {}  # when a pool may be read again at the earliest
        self._mapless: set[str] = set()
        self._placeless: set[str] = set()  # GPUs of sessions; only the library can find which card they are

    def obey(self, message: "dict[str, Any]") -> None:
        """Obey the engine's *message*: ``load`` a library, or read the ``maps`` it requests from now on.

        Raises:
            ValueError, LookupError, TypeError: *message* is not one that an engine of this version sends.
        """
        if message["do"] == "load":
            self._handed = message["path"], message["checksum"]
        elif message["do"] == "maps":
            self._wanted = [(device, region, float(pace)) for device, region, pace in message["wanted"]]
            self._due.clear()  # a new request is served as soon as the pool has rested

    def load(self) -> None:
        """Load the library whose path the engine has sent, if it has sent one.

        This is reported before. So if the library crashes this process, the engine has it loaded into no other.
        """
        if self._handed is None or self._native is not None or self._refused or not self._collector.room(MUCH):
            return
        link = self._messenger.link
        if not link.waiting:
            self._messenger.send("probe", state="loading")
        if link.waiting or link.dead:
            return
        (path, checksum), self._handed = self._handed, None
        try:
            self._native = Native(path, checksum, self._collector.regain)
        except NotTrusted as error:
            self._refuse_native(error)
        else:
            self._windows.may_begin(self._native.library)

    def read(self, device: Device, handle: Any) -> Optional[Taken]:
        """Return a reading of *device* by the best way there is; ``None`` if only the public API can read it."""
        read = device.read
        public = None if read is None or handle is None else lambda: read(handle)
        return self._take(device.name, public)

    def pinned(self) -> Optional[Taken]:
        """Return a reading of the pool of pinned host memory; ``None`` if TensorFlow has made none beside a GPU's."""
        for reader in (self._native, self.direct):
            if reader is not None and any(kind == GPU for kind, _ in reader.places.values()):
                return self._take(PINNED_NAME, None)
        return None

    def of_sessions(self, growth: Optional[bool], known: "set[str]") -> "list[Device]":
        """Return devices of TF1-style sessions that are not yet *known*. Only the allocators themselves show them.

        Some devices are returned twice, the second time with the card that they are on.
        """
        self._begin()
        reader = self._native or self.direct
        if reader is None:
            return []
        names = [f"GPU:{index}" for index in range(reader.gpus())] + (["CPU:0"] if uses_cpu_pool() else [])
        devices = []
        for name in names:
            if name in known and not (self._native is not None and name in self._placeless):
                continue
            taken = self._take(name, None)
            if taken is None:
                continue
            physical = taken.physical
            if name != "CPU:0" and reader is self.direct:
                physical = 0 if gpu_count() == 1 else None
                self._placeless.add(name)
            else:
                self._placeless.discard(name)
            grows = growth_by_environment(growth) if name != "CPU:0" else True
            devices.append(Device(name, taken.name, physical, grows, taken.reading.limit, None))
        return devices

    def settle(self) -> None:
        """Report by which way pools are read, once all devices have been tried, and let the library's thread start."""
        if self._native is not None and not self._announced:
            self._announced = True
            try:
                self._native.start_sampler()
                if self._copies.folder is not None:
                    self._native.keep_log_lines(f"{self._copies.folder}/{self._messenger.pid}.lines")
            except NotTrusted as error:
                self._refuse_native(error)
            else:
                self._messenger.send("probe", state="loaded")
        elif self._native is None and self.direct and self.direct.places and not self._direct_announced:
            self._direct_announced = True
            self._messenger.send("probe", state="direct")

    def stop(self) -> None:
        """Stop watching, end what is recorded, and release the memory of copies."""
        self._windows.refuse()
        if self._native is not None and self._announced:
            self._native.stop_sampler()
        self._copies.close()

    def next_map(self) -> Optional[float]:
        """Return when, by the monotonic clock, the next map is due; ``None`` while none is requested."""
        return min(map(self._when, self._wishes()), default=None)

    def read_maps(self) -> None:
        """Read the maps that are due."""
        wishes, now = self._wishes(), monotonic()
        for device in {device for device, _ in wishes}:
            # One copy of a pool serves all the maps of it that are due.
            due = [key for key in wishes if key[0] == device and self._when(key) <= now]
            if due and self.direct is not None:
                self._due.update((key, now + wishes[key]) for key in due)  # in case the copy fails
                rest = self._cut(self.direct, device, {key[1]: wishes[key] for key in due}, len(wishes))
                self._due.update((key, monotonic() + rest[key[1]]) for key in due)

    def _begin(self) -> None:
        """Make the reader in place, once, if the user has not forbidden it and this TensorFlow's version is known."""
        if self._look and self._collector.room(MUCH):
            self._look = False
            version = self._messenger.tensorflow
            try:
                if version is None:
                    raise NotTrusted("tensorflow_unknown")
                self.direct = Direct(tensorflow_folder(), version)
            except Exception as error:  # an audit hook of the script's may also forbid it
                self._refuse_direct(error)

    def _take(self, device: str, public: Optional[PublicReader]) -> Optional[Taken]:
        self._begin()
        taken = None
        if self._native is not None:
            try:
                taken = self._native.read(device, public)
            except NotTrusted as error:
                self._refuse_native(error, device)
        if self.direct is not None and (taken is None or device not in self.direct.places):  # it reads the maps
            try:
                found = self.direct.read(device, public)
                taken = taken or found
            except Exception as error:
                self._refuse_direct(error, device)
        if taken is not None:
            for growth in taken.growths:
                self._messenger.send("pool_growth", device=device, **growth._asdict())
        return taken

    def _when(self, key: _Key) -> float:
        return max(self._due.get(key, 0.0), self._rested.get(key[0], 0.0))

    def _wishes(self) -> "dict[_Key, float]":
        """Return the seconds between maps, by device and region.

        A device may be requested twice: by its name, and with all devices. Then the shorter time counts.
        """
        wishes: dict[_Key, float] = {}
        for wanted, region, pace in self._wanted:
            for name in () if self.direct is None else self.direct.places:
                if wanted in (None, name) and name not in self._mapless:
                    wishes[name, region] = min(pace, wishes.get((name, region), pace))
        return wishes

    def _cut(
        self, direct: Direct, device: str, wanted: "dict[Optional[int], float]", wishes: int
    ) -> "dict[Optional[int], float]":
        """Copy a pool for maps of the *wanted* regions; return the seconds until the next map, by region."""
        try:
            copied, cost = self._copies.make(direct, device, direct.places[device], LIVE)
        except NoCopy as why:
            self._mapless.add(device)
            self._messenger.send("memory_map", device=device, mapless=why.why, count=why.count, detail=why.detail)
            return wanted
        self._rested[device] = monotonic() + cost / _HURRY_SHARE
        rest = cost / _MAP_SHARE * wishes
        if copied is None:
            return dict.fromkeys(wanted, rest)
        rest = max(rest, copied["chunks"][0] * _CONDENSE_S / _CONDENSE_SHARE * len(wanted))
        paces = {region: max(pace, rest) for region, pace in wanted.items()}
        self._copies.tell(copied, [[region, round(pace, 3)] for region, pace in paces.items()])
        return paces

    def _refuse_native(self, error: NotTrusted, device: str = "") -> None:
        """Never call the library again."""
        if self._native is not None:
            self._native.stop_sampler()
        self._native = None
        self._windows.refuse()
        self._refused = True
        if self.direct is not None:
            self.direct.forget()
        self._messenger.send("probe", state="failed", distrust=error.told(device))

    def _refuse_direct(self, error: Exception, device: str = "") -> None:
        """Never read in place again: the public API remains."""
        self.direct = None
        if not isinstance(error, (NotTrusted, OSError)):
            self._messenger.report("in_place", error)
        told = error if isinstance(error, NotTrusted) else NotTrusted("system", str(error))
        self._messenger.send("probe", state="public", distrust=told.told(device))
