"""The thread that reads the allocators, at the interval that the engine was started with."""

import _signal as signal  # type: ignore[import-not-found]
import json
import os
import time
from typing import TYPE_CHECKING, Any, Callable, Optional

from . import real_threads
from .census import WAITING
from .collector import MUCH
from .devices import Device, gpu_uuid, local_devices
from .operation_lines import PAUSE_S
from .parts import Parts
from .pools import ChunkCopies, Pools
from .trust import PINNED_NAME
from .wait_watch import WaitWatch

if TYPE_CHECKING:
    from types import ModuleType

    from .settings import Settled

_OWN_FAULTS = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT}

_SOON_S = 0.01
_AT_FIRST_S = 0.3
"""For this time after the devices are made they are read every ``_SOON_S``. Until the script's first operation its GPU
memory is the CUDA context's. That is certain only if a reading before and one after NVML's both find nothing
computed."""
_OPENING_S = 0.05
"""The longest that the script waits, as its devices are made, for the recording of its allocations to begin."""
_CHORES_S = 0.5
"""Between two turns of all but the readings, where nothing is due earlier: to read the engine's messages, to look for
allocations that wait. It is the most that this thread does, and the script's threads cannot run Python meanwhile."""


class Sampler:
    """Reads every allocator of this process until it is stopped or the engine has gone."""

    def __init__(
        self, parts: Parts, context: "Optional[ModuleType]", interval: float, folder: Optional[str], in_place: bool
    ) -> None:
        """*context* is ``tensorflow.python.eager.context``, ``None`` without TensorFlow.

        The allocators are read every *interval* seconds. *folder* is the session's, ``None`` if it is not known. With
        *in_place*, pools may be read in place.
        """
        self._messenger, self._collector, _, self._census, self._functions, self._lines, self._windows, *_ = parts
        self._phases, self._frameworks = parts.phases, parts.frameworks
        self.context = context
        self._interval = interval
        copies = ChunkCopies(parts.messenger, folder)
        self._pools = Pools(parts.messenger, parts.collector, copies, self._windows, in_place)
        self._waits = WaitWatch(parts.messenger, copies, self._wait_lasts)
        self._made: tuple[Any, list[Settled]] = (None, [])
        self._generation = self._seen = 0
        self._first_until = self._next_reading = self._next_chores = 0.0
        self._devices: list[Device] = []
        self._sessions = False
        self._session_growth: Optional[bool] = None
        self._waited = False  # whether the script has waited for the first window
        self._opened = real_threads.allocate_lock()
        self._opened.acquire()
        self._stopping = False
        self._orders: list[bytes] = []  # from the engine, until there is room to obey them
        self.held = 0
        """Bytes of the largest pool."""
        self._wake = real_threads.allocate_lock()
        self._wake.acquire()
        self._ended = real_threads.allocate_lock()

    def start(self) -> None:
        """Start the thread. The script's signals keep going to the script's own threads."""
        # Signals are blocked before the thread starts, since it inherits that. A signal that went to this thread
        # would not interrupt the main thread's waiting.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        try:
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - _OWN_FAULTS)
            self._ended.acquire()
            real_threads.start_new_thread(self._run, ())
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def devices_changed(self, options: Any, settled: "list[Settled]") -> None:
        """Read the devices that TensorFlow has made with the GPUOptions *options*.

        *settled* lists the user's settings in these options.
        """
        self._made = options, settled
        self._generation += 1
        self._first_until = time.monotonic() + _AT_FIRST_S
        self._wait_for_window()

    def session_made(self, growth: Optional[bool]) -> None:
        """Read the devices that a TF1-style session has made, with *growth* as in its configuration."""
        self._sessions, self._session_growth = True, growth
        self._wait_for_window()

    def _wait_for_window(self) -> None:
        """Let the sampler's thread open the window of the start before the script allocates, if it can at once."""
        if self._waited or not self._windows.wanted:
            return
        self._waited = True
        self._next_reading = self._next_chores = 0.0
        self._hurry()
        self._opened.acquire(True, _OPENING_S)

    def _hurry(self) -> None:
        try:
            self._wake.release()
        except RuntimeError:
            pass  # the thread is woken already, and has not yet begun to wait again

    def stop(self, patience_s: float) -> bool:
        """Have the thread take a last reading and end, and wait for that. Return whether it has ended."""
        self._stopping = True
        self._hurry()
        ended = self._ended.acquire(True, patience_s)
        if ended:
            self._ended.release()
        return ended

    def _run(self) -> None:
        guarded, pid = self._messenger.guarded, self._messenger.pid
        try:
            guarded("watch", self._watch, pid)
        finally:
            if os.getpid() == pid:
                guarded("sampler", self._pools.stop)
            self._ended.release()

    def _watch(self, pid: int) -> None:
        collector = self._collector
        pause: Optional[float] = 0.0
        while os.getpid() == pid and pause is not None:
            stopping = self._stopping
            collector.hurries = stopping or time.monotonic() < self._first_until
            pause = self._work(stopping) if stopping or collector.room() else _SOON_S
            if pause is not None:
                collector.sleep(self._wake, pause)

    def _work(self, stopping: bool) -> Optional[float]:
        """Do all that is due now; return the seconds until the next is due, ``None`` if this was the last."""
        link, now = self._messenger.link, time.monotonic()
        # The first window is opened at once. If a reading is due, what is due soon is done too.
        chores = stopping or self._windows.wanted or now >= self._next_chores - self._interval / 2
        if chores:
            self._orders += link.listen()
            while self._orders and self._collector.room():
                self._messenger.guarded("obey", self._obey, self._orders.pop(0))
        if stopping or now >= self._next_reading:
            self._next_reading = now + (min(self._interval, _SOON_S) if now < self._first_until else self._interval)
            self._do("read:allocators", self._tick)
            self._do("read:frameworks", self._frameworks.read, self._interval)
            self._do("notice:phases", self._phases.tell, time.monotonic())
            self._do("count:calls", self._functions.tell, time.monotonic(), stopping)
        if chores:
            self._do_chores(stopping)
            self._next_chores = self._chores_due()
        until = min(self._next_reading, self._next_chores)
        return None if stopping or link.dead else max(0.001, until - time.monotonic())

    def _do_chores(self, stopping: bool) -> None:
        if self._pools.direct is not None:
            self._do("search:waiting allocations", self._waits.look, self._pools.direct)
        self._do("read:maps", self._pools.read_maps)
        window = self._windows.number
        names = [device.name for device in self._devices]
        self._do("record:allocations", self._windows.work, names, self._functions.busiest, stopping)
        if self._windows.number != window:  # whose memory it is that the window records
            self._census.want_for(self._windows.number or window, opened=self._windows.number > 0)
        self._do("search:lines", self._lines.work)
        if self._opened.locked() and self._waited:
            self._opened.release()
        if not stopping:
            self._do("census", self._census.tell, time.monotonic())

    def _chores_due(self) -> float:
        """Return when, by the monotonic clock, there is more to do than a reading."""
        now = time.monotonic()
        at_once = self._orders or now < self._first_until
        due = [now + (self._interval if at_once else _CHORES_S), self._pools.next_map(), self._windows.next()]
        due += [now + PAUSE_S] if self._lines.wanted else []
        return min(each for each in due if each is not None)

    def _do(self, doing: str, function: "Callable[..., object]", *arguments: Any) -> None:
        # The work before this may have let the script's threads run. What is left out now is done later.
        if self._collector.room():
            self._messenger.guarded(doing, function, *arguments)

    def _obey(self, packet: bytes) -> None:
        message = json.loads(packet)
        if message["do"] == "census":
            self._census.want(message.get("tensors") is True)
        elif message["do"] == "holders":
            finding = message.get("finding") is True
            self._windows.ask(finding)
            if finding:  # memory rises: who holds it shows in a look at the tensors
                self._census.want(tensors=True)
        elif message["do"] == "expect":
            self._windows.expected = True
        elif message["do"] == "locate":
            self._census.may_locate(message["path"], message["checksum"])
        elif message["do"] == "lines":
            self._lines.want(message["operations"])
        else:
            self._pools.obey(message)

    def _tick(self) -> None:
        messenger, collector = self._messenger, self._collector
        messenger.link.pump()
        # In local variables only: a reference that stayed would keep the script's context from being deleted.
        current: Any = None if self.context is None else self.context._context
        handle = None if current is None else current._context_handle
        if handle is not None or self._sessions:
            self._pools.load()
        if handle is not None and self._seen != self._generation and collector.room(MUCH):
            self._seen = self._generation
            if current._server_def is not None or current._collective_ops_server_def is not None:
                self._windows.server_begins("server")  # a server for other machines has a profiler's service, too
            self._look_again(current)
        elif handle is None and self._sessions:
            self._look_for_sessions()
        elif handle is None:
            return
        for device in list(self._devices):
            if not collector.room():
                return
            try:
                self._read(device, handle)
            except Exception as error:
                self._devices.remove(device)
                messenger.report(f"read:{device.name}", error)
        pinned = self._pools.pinned()
        if pinned is not None:
            messenger.offer("allocator", device=PINNED_NAME, allocator=pinned.name, **pinned.reading._asdict())
        self._pools.settle()

    def _wait_lasts(self) -> None:
        """Have a census and a window of allocations taken: the script stands still, and they cost it nothing."""
        self._census.want(tensors=True, moment=WAITING)
        self._windows.waits()

    def _read(self, device: Device, handle: Any) -> None:
        taken = self._pools.read(device, handle)
        if taken is not None:
            reading, name = taken.reading, taken.name or device.allocator_name
        elif device.read is not None and handle is not None:
            reading, name = device.read(handle), device.allocator_name
        else:
            return
        self.held = max(self.held, reading.pool or 0, reading.in_use)
        self._windows.read(device.name, reading.peak, reading.allocations)
        self._phases.read(device.name, max(reading.high or 0, reading.in_use))
        self._messenger.offer("allocator", device=device.name, allocator=name, **reading._asdict())

    def _look_again(self, context: Any) -> None:
        options, settled = self._made
        self._devices = []
        assert self.context is not None  # *context* is of it
        self._devices = local_devices(context, options, self.context.pywrap_tfe.TFE_GetMemoryInfo)
        for device in self._devices:
            self._tell(device, settled if device.name.startswith("GPU") else [])

    def _look_for_sessions(self) -> None:
        known = {device.name for device in self._devices}
        for device in self._pools.of_sessions(self._session_growth, known):
            self._devices = [*(one for one in self._devices if one.name != device.name), device]
            self._tell(device, [])
            self._census.variables.placed_on(device.name)

    def _tell(self, device: Device, settled: "list[Settled]") -> None:
        uuid = None if device.physical is None else gpu_uuid(device.physical)
        options = {name: getattr(device, name) for name in ("physical", "growth", "limit", "allocator")}
        changed = [one._asdict() for one in settled]
        self._messenger.send("effective", device=device.name, uuid=uuid, settled=changed, **options)
