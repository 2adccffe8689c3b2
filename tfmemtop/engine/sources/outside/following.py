"""Follows one process from outside: publishes what a hook would publish, as far as it can be seen from there."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tfmemtop import events
from tfmemtop.agent.layouts import Layout, Reading
from tfmemtop.engine.own_thread import OwnThread
from tfmemtop.engine.sources.chunk_maps import SUFFIX
from tfmemtop.engine.sources.outside.look import Look, allocator_event, cards_of, dated
from tfmemtop.engine.sources.outside.pools import Copy
from tfmemtop.engine.sources.processes import find, read_command, read_environment, working_folder
from tfmemtop.engine.sources.source import Source
from tfmemtop.engine.stream import Stream
from tfmemtop.engine.stream.complaints import complain
from tfmemtop.events.damage import Damaged, damage_of
from tfmemtop.events.machine import is_gpu
from tfmemtop.settings import Settings

REFRESH_S = 1.0
"""Seconds between two looks at the process itself. A look also finds allocators that have been added."""

_LEAST_S, _MOST_S = 0.05, 60.0
_SHARE = 50
"""After a map has been read, the next is read no sooner than after so many times the duration of that reading."""


class FromOutside(Source):
    """Follows one process at a time. It reads in a thread of its own, and changes nothing in the process.

    As a hook does, it writes copies of a pool's regions and chunks into *folder*. *take_copy* receives the message that
    describes each copy.
    """

    def __init__(
        self,
        stream: Stream,
        folder: Path,
        take_copy: Callable[[events.Chunks], None],
        interval_s: float,
    ) -> None:
        """*interval_s* is the time between two readings."""
        super().__init__(stream)
        self._folder = folder
        self._take_copy = take_copy
        self._interval_s = min(max(interval_s, _LEAST_S), _MOST_S)
        self._thread = OwnThread("outside")
        self._task: asyncio.Task[None] | None = None
        self._look: Look | None = None
        self._run = 0
        self._ended = False
        self._told: events.Outside | None = None
        self._last: dict[str, Reading] = {}
        self._effective: dict[str, events.Effective] = {}
        self._wanted: list[tuple[str | None, int | None, float]] = []
        self._map_at: dict[str, float] = {}
        self._cards: dict[int, events.Device] = {}
        self._held: list[int] = []
        self._environment: dict[str, str] = {}

    @property
    def pid(self) -> int | None:
        """The process that is followed; ``None`` if none is."""
        return self._look.pid if self._look is not None else None

    def follow(self, pid: int) -> bool:
        """Follow process *pid* from now on, and leave the one that was followed before.

        Return ``False``, and leave nothing, if there is no such process. One that is followed already goes on as it is.
        """
        if pid == self.pid and not self._ended:
            return True
        process = find(pid)
        if process is None:
            return False
        self._leave()
        self._run += 1
        self._ended = False
        self._told = None
        self._last, self._effective, self._map_at, self._held = {}, {}, {}, []
        self._look = Look(pid)
        try:
            self._environment = read_environment(pid)
        except OSError:
            self._environment = {}
        argv = read_command(pid) or [f"[{process.name}]"]
        self._stream.publish(
            events.Run(
                t=self._stream.now(),
                run=self._run,
                pid=pid,
                argv=argv,
                cwd=working_folder(pid),
                settings=Settings(),
                outside=True,
            )
        )
        self._task = asyncio.get_running_loop().create_task(self._keep_on(self._look))
        return True

    def send(self, pid: int, command: dict[str, Any]) -> bool:
        """Take a command that is meant for the hook of process *pid*.

        Return whether it was taken: the process must be the one that is followed.
        """
        if self._look is None or pid != self._look.pid:
            return False
        if command["do"] == "maps":
            self._wanted = [(device, region, pace) for device, region, pace in command["wanted"]]
            self._map_at.clear()
        return True

    def close(self) -> None:
        """Leave the process, which goes on as before."""
        super().close()
        self._leave()
        self._thread.shutdown(cancel_futures=True)

    def _leave(self) -> None:
        if self._task is not None:
            self._task.cancel()
        if self._look is not None:
            if not self._ended and self._told is not None:
                self._tell(self._look, replace(self._told, state=events.OutsideState.LEFT, detail=""))
            # The thread closes it after its present call.
            self._thread.submit(self._look.close)
        self._look = self._task = None
        self._wanted = []

    def on_event(self, event: events.Event) -> None:
        """Handle an event of the stream."""
        if isinstance(event, events.Device):
            self._cards[event.index] = event
        elif isinstance(event, events.DeviceReading) and self._look is not None:
            here = any(process.pid == self._look.pid for process in event.processes)
            if here != (event.index in self._held):
                self._held = sorted({*self._held} ^ {event.index})

    async def _keep_on(self, look: Look) -> None:
        while not self._ended:
            try:
                await self._follow(look)
            except Exception as error:
                # An unforeseen error costs a second of readings, but not the session. The same error is published once.
                complain()
                damage, detail = damage_of(error)
                state = events.OutsideState.NOT_FOUND
                self._tell(look, replace(self._told or look.about, state=state, detail=detail, damage=damage))
                await asyncio.sleep(REFRESH_S)

    async def _follow(self, look: Look) -> None:
        loop = asyncio.get_running_loop()
        refresh_at = due = loop.time()
        while not self._ended:
            now = loop.time()
            if now >= refresh_at:
                about = await loop.run_in_executor(self._thread, look.refresh)
                self._tell(look, about)
                refresh_at = now + REFRESH_S
                if self._ended:
                    return
            if look.about.state.inside:
                for device, (name, figures) in (await loop.run_in_executor(self._thread, look.read)).items():
                    self._publish(look, device, name, figures)
                await self._make_maps(look)
                due = max(due + self._interval_s, loop.time())
            else:
                due = refresh_at
            await asyncio.sleep(max(0.0, due - loop.time()))

    def _tell(self, look: Look, about: events.Outside) -> None:
        if about == self._told:
            return
        before, self._told = self._told, about
        now = self._stream.now()
        self._stream.publish(dated(about, now))
        if about.state.inside and not (before and before.state.inside):
            # Pools are read in place, as a hook does without a compiler. So maps can be requested.
            self._effective.clear()
            self._last.clear()
            self._stream.publish(events.Probe(t=now, pid=look.pid, state=events.ProbeState.DIRECT))
        if about.state is events.OutsideState.GONE:
            self._ended = True
            self._stream.publish(events.RunEnd(t=self._stream.now(), run=self._run, exit_code=None, signal=None))

    def _publish(self, look: Look, device: str, name: str, figures: Reading) -> None:
        now, before = self._stream.now(), self._last.get(device)
        self._settle(look, device)
        if before is not None and before.pool is not None and figures.pool is not None and before.pool != figures.pool:
            growth = events.PoolGrowth(
                t=now, pid=look.pid, device=device, at=now, before=before.pool, after=figures.pool
            )
            self._stream.publish(growth)
        high = figures.peak if before is not None and figures.peak > before.peak else None
        self._last[device] = figures
        self._stream.publish(allocator_event(look.pid, device, name, figures, now, high))

    def _settle(self, look: Look, device: str) -> None:
        """Publish what can be seen of how TensorFlow made *device*, whenever more of it is known."""
        known = self._effective.get(device)
        if known is not None and known.growth is not None and (known.uuid is not None or not is_gpu(device)):
            return
        uuid = None
        if is_gpu(device):
            cards = [self._cards[index] for index in sorted(self._cards)]
            gpus = len({one for one in (*self._last, device) if is_gpu(one)})
            uuids = cards_of(gpus, cards, self._held, self._environment)
            number = int(device.partition(":")[2])
            uuid = uuids[number] if number < len(uuids) else None
        growth = known.growth if known is not None and known.growth is not None else look.grows(device)
        now = events.Effective(
            t=self._stream.now(),
            pid=look.pid,
            device=device,
            physical=None,
            uuid=uuid,
            growth=growth,
            limit=None,
            allocator="bfc",
        )
        if known is None or (known.growth, known.uuid) != (now.growth, now.uuid):
            self._effective[device] = now
            self._stream.publish(now)

    async def _make_maps(self, look: Look) -> None:
        loop = asyncio.get_running_loop()
        for device in list(self._last) if self._wanted else ():
            wishes = [(region, pace) for wanted, region, pace in self._wanted if wanted in (None, device)]
            if not wishes or loop.time() < self._map_at.get(device, 0.0):
                continue
            began = time.perf_counter()
            try:
                copy = await loop.run_in_executor(self._thread, self._put_down, look, device)
            except (Damaged, OSError) as error:
                now, (damage, detail) = self._stream.now(), damage_of(error)
                self._stream.publish(events.MemoryMap(t=now, pid=look.pid, device=device, damage=damage, detail=detail))
                self._map_at[device] = loop.time() + _MOST_S
                continue
            took = time.perf_counter() - began
            self._map_at[device] = loop.time() + max(min(pace for _, pace in wishes), took * _SHARE)
            if copy is not None and look.layout is not None:
                self._take_copy(chunks_of(look.pid, look.layout, device, copy, wishes, round(took * 1e6)))

    def _put_down(self, look: Look, device: str) -> Copy | None:
        copy = look.copy(device)
        if copy is not None:
            path = self._folder / f"{look.pid}.{device}.live{SUFFIX}"
            new = path.with_suffix(".new")
            new.write_bytes(copy.regions + copy.chunks)
            new.replace(path)  # a reader that has it open still reads all of the old one
        return copy


def chunks_of(
    pid: int, layout: Layout, device: str, copy: Copy, wishes: list[tuple[int | None, float]], cost_us: int
) -> events.Chunks:
    """Return the message that describes the *copy* of a pool, so that maps can be made from it.

    *wishes* are the regions by address, ``None`` for the whole pool, and the seconds until the next map. *cost_us* is
    the time that the copy took, in µs.
    """
    return events.Chunks(
        pid=pid,
        device=device,
        pool=copy.figures.pool or 0,
        in_use=copy.figures.in_use,
        regions=(
            len(copy.regions) // layout.region_size,
            layout.region_size,
            layout.region_address,
            layout.region_bytes,
        ),
        chunks=(len(copy.chunks) // layout.chunk_size, layout.chunk_size, layout.chunk_address, layout.chunk_bytes),
        chunk=(layout.chunk_requested, layout.chunk_id, layout.chunk_bin),
        wanted=wishes,
        cost_us=cost_us,
    )
