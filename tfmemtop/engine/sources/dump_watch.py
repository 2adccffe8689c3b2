"""Waits for the memory dumps that TensorFlow writes when an allocation fails, and publishes them at once.

TensorFlow writes one at each failed attempt, and tries again for ten seconds before it raises an error. So the first
dump shows ten seconds earlier that memory has run out.
"""

import asyncio
import os
import stat
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tfmemtop.engine.sources import chunk_maps, window_file
from tfmemtop.engine.sources.dump_format import condense, read_dump
from tfmemtop.engine.sources.hooks import Hooks
from tfmemtop.engine.stream.stream import Stream
from tfmemtop.events import Damage, Event, MapMoment, MemoryMap, NoticeKind
from tfmemtop.events.damage import Damaged, damage_of
from tfmemtop.units import MIB

PACE_S = 0.5

_BIGGEST = 64 * MIB  # bytes of a file; a dump takes about 40 bytes for each chunk
_ATTEMPTS = 10  # to read a dump that is still being written

_OTHERS = {chunk_maps.SUFFIX, window_file.SUFFIX}
"""The endings of other files in the same folder."""

_Starts = Mapping[tuple[int, str], Sequence[int]]
"""Addresses where regions start, by process and device."""


class _Unread(NamedTuple):
    """A dump that cannot be read: the file's name, and what is wrong with it."""

    name: str
    damage: Damage
    detail: str


class Dumps:
    """Reads, publishes and deletes the dumps that appear in *folder*: ``<pid>_<allocator>.<microseconds>``."""

    def __init__(self, stream: Stream, hooks: Hooks, folder: Path) -> None:
        self._stream = stream
        self._hooks = hooks
        self._folder = folder
        self._attempts: dict[str, int] = {}
        self._starts: dict[tuple[int, str], list[int]] = {}
        self._looking = threading.Lock()  # _watch() looks in a thread, and drain() may look at the same time
        self._thread = ThreadPoolExecutor(1, "dumps")
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Start watching the folder. Call it in the running event loop."""
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            why = error.strerror or str(error)
            self._stream.notice("dump", NoticeKind.DUMPS_OFF, detail=why)
        self._stream.listen(self._take)
        self._task = asyncio.get_running_loop().create_task(self._watch())

    def close(self) -> None:
        """Publish the dumps that are there, and stop."""
        self._stream.forget(self._take)
        if self._task is not None:
            self._task.cancel()
        self._publish(self._look(self._starts))
        self._thread.shutdown(wait=False, cancel_futures=True)

    def drain(self) -> None:
        """Publish the dumps that have been written until now, so that the end of a run is published after them."""
        self._publish(self._look(self._starts))

    def _take(self, event: Event) -> None:
        if isinstance(event, MemoryMap) and event.moment is MapMoment.LIVE and event.regions:
            self._starts[event.pid, event.device] = [region.address for region in event.regions]

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(PACE_S)
            if self._names():
                self._publish(await loop.run_in_executor(self._thread, self._look, dict(self._starts)))

    def _publish(self, found: list[MemoryMap | _Unread]) -> None:
        for one in found:
            if isinstance(one, MemoryMap):
                self._stream.publish(one)
                self._hooks.send(one.pid, {"do": "where"})
            else:
                self._stream.notice(
                    "dump",
                    NoticeKind.DUMP_UNREAD,
                    detail=f"{one.name}: {one.detail}" if one.detail else one.name,
                    damage=None if one.detail else one.damage,
                )

    def _names(self) -> list[str]:
        try:
            names = [path.name for path in self._folder.iterdir() if path.suffix not in _OTHERS]
            return sorted(names, key=_microseconds)
        except OSError:
            return []  # the session's folder has been deleted

    def _look(self, starts: _Starts) -> list[MemoryMap | _Unread]:
        """Return the map of each allocator's newest dump, or why the dump cannot be read.

        Each dump that was read is deleted, and older ones are deleted unread. A dump that cannot be read yet may still
        be being written: it stays until ten attempts have failed.
        """
        found: list[MemoryMap | _Unread] = []
        with self._looking:
            names = self._names()
            newest = {name.rpartition(".")[0]: name for name in names}
            for name in names:
                path = self._folder / name
                if newest[name.rpartition(".")[0]] == name:
                    try:
                        found.append(self._read(path, starts))
                    except (OSError, ValueError) as error:
                        self._attempts[name] = self._attempts.get(name, 0) + 1
                        if self._attempts[name] < _ATTEMPTS:
                            continue  # still being written
                        found.append(_Unread(name, *damage_of(error)))
                self._attempts.pop(name, None)
                with suppress(OSError):  # as for a folder
                    path.unlink(missing_ok=True)
        return found

    def _read(self, path: Path, starts: _Starts) -> MemoryMap:
        # O_NONBLOCK: if this is not a file but a pipe, the engine must not wait for its writer.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise Damaged(Damage.NOT_A_FILE)
            if found.st_size > _BIGGEST:
                raise Damaged(Damage.TOO_LARGE)
            content = file.read()
        allocator, pieces = read_dump(content)
        pid, device = int(path.name.partition("_")[0]), _device(allocator)
        return condense(pid, device, pieces, starts.get((pid, device), ()), t=self._stream.now())


def _microseconds(name: str) -> tuple[int, str]:
    tail = name.rpartition(".")[2]
    return (int(tail) if tail.isdecimal() else 0), name


def _device(allocator: str) -> str:
    """Return the device of an allocator, such as ``GPU:0`` for TensorFlow's name ``GPU_0_bfc``."""
    parts = allocator.split("_")
    if parts[0] == "GPU" and len(parts) > 1 and parts[1].isdecimal():
        return f"GPU:{parts[1]}"
    return "HOST:0" if "host" in allocator else "CPU:0"
