"""Looks at one process from outside: which TensorFlow it has, its pools, and what prevents reading them.

It also makes the events about that. This is done in a thread of its own: a page of the process that the kernel has
moved to a disk takes time to read.
"""

from collections.abc import Mapping as Map
from collections.abc import Sequence

from msgspec.structs import replace

from tfmemtop.agent.bfc import Allocators
from tfmemtop.agent.layouts import Layout, Reading, layout_of
from tfmemtop.engine.sources.outside.pools import CPU, Copy, Found, Pool
from tfmemtop.engine.sources.outside.remote import (
    MappedLibrary,
    Mapping,
    NoMemory,
    Regions,
    RemoteMemory,
    in_the_way,
    mapped,
    mappings,
    python_of,
    rights,
    version_of,
)
from tfmemtop.engine.sources.processes import (
    HostProcess,
    children,
    executable,
    find,
    has_tensorflow,
    read_command,
    text_of,
)
from tfmemtop.events import Allocator, Device, Outside, OutsideState
from tfmemtop.events.damage import Damaged, damage_of

S = OutsideState

_MOST_CHILDREN = 200
_UNSOUND_MOST = 20
"""Unsound readings of a pool in a row after which it is searched for again."""


class Look:
    """Looks at process *pid*. Use it in one thread only.

    ``about`` is how far it has come, and which TensorFlow it found: an event without its time, see :func:`dated`.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.about = self._about(S.NO_TENSORFLOW)
        self.layout: Layout | None = None
        self._process = find(pid)
        self._memory: RemoteMemory | None = None
        self._found: Found | None = None
        self._pools: dict[str, Pool] = {}
        self._children: list[HostProcess] = []

    def close(self) -> None:
        """Close the process's memory."""
        self._forget()

    def _about(self, state: S, detail: str = "", python: str = "") -> Outside:
        return Outside(t=0.0, pid=self.pid, state=state, detail=detail, python=python)

    def refresh(self) -> Outside:
        """Look at what may have changed: the process, its TensorFlow, its allocators. Return the new state."""
        process = self._process
        if process is None or not process.refresh():
            self._forget()
            left = ", ".join(str(child.pid) for child in self._children if child.is_alive())
            self.about = replace(self.about, state=S.GONE, detail=left)
            return self.about
        self._children = children(self.pid)
        try:
            self.about = self._look(process)
        except NoMemory:
            # The process is just ending, or has become another program. The next look shows which.
            self._forget()
            self.about = self._about(S.EXECUTED, process.name)
        except PermissionError:
            self._forget()
            self.about = self._about(in_the_way(rights(self.pid)))
        except (FileNotFoundError, ProcessLookupError):
            self._forget()
            self.about = replace(self.about, state=S.GONE, detail="")
        except (Damaged, OSError) as error:
            self._forget()
            self.about = self._damaged(S.NOT_FOUND, error)
        return self.about

    def _damaged(self, state: S, error: Damaged | OSError) -> Outside:
        damage, detail = damage_of(error)
        return replace(self.about, state=state, detail=detail, damage=damage)

    def read(self) -> dict[str, tuple[str, Reading]]:
        """Return the name and the figures of each pool, by device. Pools that are not sound this time are left out."""
        found: dict[str, tuple[str, Reading]] = {}
        for device, pool in list(self._pools.items()):
            try:
                found[device] = pool.name, pool.read()
                pool.unsound = 0
            except Damaged as error:
                pool.unsound += 1
                if pool.unsound >= _UNSOUND_MOST:
                    del self._pools[device]  # refresh() searches for it again
                    if not self._pools:
                        self.about = self._damaged(S.NOT_SOUND, error)
            except (NoMemory, PermissionError):
                self._forget()
                break
        return found

    def copy(self, device: str) -> Copy | None:
        """Return a copy of the regions and chunks of *device*'s pool.

        ``None`` if they changed during every attempt, or there is no such pool.

        Raises:
            Damaged: no map can be made of the pool.
        """
        try:
            return self._pools[device].copy() if device in self._pools else None
        except (NoMemory, PermissionError):
            return None

    def grows(self, device: str) -> bool | None:
        """Return whether the pool of *device* grows as needed; ``None`` while that is not known."""
        if device == CPU:
            return True  # TensorFlow always lets this pool grow
        try:
            return self._pools[device].grows() if device in self._pools else None
        except (Damaged, NoMemory, PermissionError):
            return None

    def _look(self, process: HostProcess) -> Outside:
        if self._memory is None:
            opened = self._open()
            if opened.state is not S.NO_DEVICES:
                return opened
        assert self._memory is not None and self._found is not None
        self._find(self._found)
        state = S.READING if self._pools else S.NO_POOL if self._found.made else S.NO_DEVICES
        if state is S.READING and process.stopped:
            state = S.STOPPED
        if self.about.state is S.NOT_SOUND and not self._pools:
            return self.about
        return replace(self.about, state=state, detail="", damage=None)

    def _open(self) -> Outside:
        """Find TensorFlow in the process. The state is ``NO_DEVICES`` if TensorFlow is there and can be read."""
        found = list(mappings(self.pid))
        memory = RemoteMemory(self.pid)
        try:
            about = self._identify(memory, found)
        except BaseException:
            memory.close()
            raise
        if about.state is S.NO_DEVICES:
            self._memory, self.about = memory, about
        else:
            memory.close()
        return about

    def _identify(self, memory: RemoteMemory, found: list[Mapping]) -> Outside:
        python = python_of(found)
        library = mapped(found)
        if library is None:
            return self._about(S.NO_TENSORFLOW, _child_with_tensorflow(self.pid), python)
        folder = text_of(library.folder) if library.folder else None
        about = replace(self._about(S.NO_DEVICES, python=python), tensorflow_path=folder)
        file = library.file(self.pid)
        version = version_of(file) if file is not None else None
        if file is None or version is None:
            return replace(about, state=S.REPLACED if file is None else S.NO_VERSION)
        about = replace(about, tensorflow=version)
        self.layout = layout_of(version)
        if self.layout is None:
            return replace(about, state=S.NO_TABLE, detail=version)
        self._found = Found(memory, MappedLibrary(file, library.base), self.layout)
        self._found.look(Regions(found))
        return about

    def _find(self, found: Found) -> None:
        """Add the pools of allocators that TensorFlow has made since the last look."""
        assert self._memory is not None and self.layout is not None
        if not found.made:
            found.look(Regions(list(mappings(self.pid))))
        allocators = Allocators(self._memory, self.layout)
        for device, address in found.allocators():
            known = self._pools.get(device)
            if (known is not None and known.address == address) or not allocators.is_pool(address):
                continue
            try:
                pool = Pool(self._memory, self.layout, address)
                pool.read()
            except Damaged as error:
                if known is None:
                    self.about = self._damaged(S.NOT_SOUND, error)
            else:
                self._pools[device] = pool

    def _forget(self) -> None:
        if self._memory is not None:
            self._memory.close()
        self._memory = self._found = None
        self._pools = {}


def _child_with_tensorflow(pid: int) -> str:
    """Return the number of a descendant of *pid* that has TensorFlow; empty if none has.

    There is one if *pid* is ``uv run`` or another launcher.
    """
    below = children(pid, recursive=True)[:_MOST_CHILDREN]
    return next((str(child.pid) for child in below if has_tensorflow(child.pid)), "")


def dated(about: Outside, t: float) -> Outside:
    """Return the event *about* a process for the time *t*, with what the system says of the process then."""
    process, pid = find(about.pid), about.pid
    ppid = process.ppid if process else 0
    return replace(about, t=t, ppid=ppid, argv=read_command(pid), executable=_executable(pid))


def allocator_event(pid: int, device: str, name: str, figures: Reading, t: float, high: int | None = None) -> Allocator:
    """Return the event of one reading of one pool."""
    return Allocator(
        t=t,
        pid=pid,
        device=device,
        allocator=name,
        in_use=figures.in_use,
        peak=figures.peak,
        pool=figures.pool,
        limit=figures.limit,
        peak_pool=figures.peak_pool,
        allocations=figures.allocations,
        high=high,
    )


def _executable(pid: int) -> str:
    """Return the path of the program of process *pid*; empty where it cannot be read."""
    try:
        return text_of(executable(pid))
    except OSError:
        return ""


_ORDER, _VISIBLE = "CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES"


def cards_of(count: int, cards: Sequence[Device], held: Sequence[int], environment: Map[str, str]) -> list[str]:
    """Return the UUIDs of the cards of a process's *count* GPU allocators, in the allocators' order.

    The result is empty where the cards cannot be determined. *cards* are all cards, in the driver's order. *held* are
    the numbers of the cards on which the driver lists the process. *environment* is that with which it was started.
    """
    uuids = {card.index: card.uuid for card in cards}
    on = [index for index in held if index in uuids]
    if len(on) == 1:
        return [uuids[on[0]]] * count  # several logical devices on one card
    shown = visible(cards, environment)
    # Several logical devices on one of several cards look the same as one device on each card.
    return [card.uuid for card in shown] if count == len(shown) and (not on or len(on) == count) else []


def visible(cards: Sequence[Device], environment: Map[str, str]) -> list[Device]:
    """Return the cards that CUDA shows the process, in CUDA's order; empty where that order is not known."""
    asked = environment.get(_VISIBLE)
    if asked is None:
        return list(cards) if _in_driver_order(cards, environment) else []
    found: list[Device] = []
    for word in map(str.strip, asked.split(",")):
        if word.isdecimal() and _in_driver_order(cards, environment):
            fitting = [card for card in cards if card.index == int(word)]
        else:
            fitting = [card for card in cards if word and card.uuid.startswith(word)]
        if len(fitting) != 1 or fitting[0] in found:
            break  # CUDA shows none from there on
        found += fitting
    return found


def _in_driver_order(cards: Sequence[Device], environment: Map[str, str]) -> bool:
    """Return whether CUDA numbers the cards as the driver does: by their place on the bus, or because all are alike."""
    return environment.get(_ORDER) == "PCI_BUS_ID" or len({card.name for card in cards}) <= 1
