"""Decides when windows of allocations are opened, and reports them to the engine.

In a window TensorFlow reports each allocation, as it does to a profiler. ``probe/recorder.h`` receives these reports.
The script's own profilers have priority: no window is open while one of them is on. No window is opened at all where a
profiler may start unnoticed.
"""

from time import monotonic
from typing import Any, Optional

from .devices import uses_cpu_pool
from .messenger import Messenger, tensorflow_folder
from .native_windows import BY_EXIT, CLOSED, EarlyRecording, Limits, NativeWindows, Progress
from .real_threads import pause
from .trust import PINNED_NAME, place_of

START, INTERVAL, PEAK, FINDING, ASKED, WAITING = "start", "interval", "peak", "finding", "asked", "waiting"

SHARE = 0.005
"""The share of the script's time that windows may cost."""

_START = Limits(steps=0, seconds=3600.0, allocations=200_000, events=2_000_000, size=64 << 20, pause_s=0.02)
_STEP = Limits(steps=1, seconds=3.0, allocations=50_000, events=200_000, size=8 << 20, pause_s=0.001)
_EMERGENCY = _STEP._replace(steps=0, seconds=0.1)
_RISEN = 10, 1 << 20  # percent and bytes by which a peak rises since the last window, so that another one is opened
_PARTS_S = 1.0  # between two messages about an open window
_READS_S = 0.5  # between two readings of the window of the start, at first; then half of its age
_LOOK_S = 0.05  # between two looks at an open window
_GOODBYE_S = 0.3
_NO_FILE = {"closed": None, "last": True, "bytes": 0}


class _Open:
    """A window that is open, or whose file is still written."""

    def __init__(self, number: int, opened: str, pools: "list[str]") -> None:
        self.number = number
        self.opened = opened
        self.pools = pools
        self.since = monotonic()
        self.told = self.since
        self.bytes = self.allocations = self.completed = 0
        self.reading: Optional[str] = None  # why its file is being completed, to be read while the window goes on


class Windows:
    """Opens and reports windows, in the sampler's thread.

    The methods about the script's profilers are called in the script's threads.
    """

    def __init__(self, messenger: Messenger) -> None:
        self._messenger = messenger
        self._folder: Optional[str] = None
        self._interval = 0.0
        self._served = ""  # why no window can be opened any more
        self._profilers = 0  # the number of profilers that the script is just starting
        self._native: Optional[NativeWindows] = None
        self._early: Optional[EarlyRecording] = None
        self.expected = False  # whether the library is being built: TensorFlow is to record by itself until then
        self._count = self._allocations = 0
        self._open: Optional[_Open] = None
        self._awaited: Optional[_Open] = None  # the window that the probe opens by itself, once a peak has risen
        self._newest_ns = 0  # when the newest window before that one began
        self._wishes: set[str] = set()
        self._next = self._retry_at = self._rests_until = 0.0
        self._peaks: dict[str, int] = {}  # the first ones read after the last window, or the last reading of one
        self._risen = self._found = False
        self._missing_told: set[str] = set()
        self._function = ""

    def may_write(self, folder: Optional[str], interval: float) -> None:
        """Let windows be written to *folder*, the session's. One opens every *interval* seconds; with 0, none does."""
        self._folder, self._interval = folder, interval

    @property
    def wanted(self) -> bool:
        """Whether the window of the start is still to be opened."""
        return self._interval > 0 and self._count == 0 and not self._served

    @property
    def number(self) -> int:
        """The number of the window that is open, counted from 1; 0 while none is."""
        return 0 if self._open is None else self._open.number

    @property
    def _opens_itself(self) -> bool:
        """Whether windows may be opened without a request."""
        return self._interval > 0 and not (self._served and self._count == 0)

    def may_begin(self, native: Any) -> None:
        """Use *native*, the library of the probe, which has been loaded. No window is opened without it."""
        windows = self._native = NativeWindows(native)
        for _ in range(self._profilers + (1 if self._served else 0)):
            windows.forbid()
        if self.wanted:
            self._wishes.add(START)

    def read(self, device: str, peak: Optional[int], allocations: Optional[int]) -> None:
        """Note the present *peak* of a pool, in bytes, and the number of its *allocations* until now."""
        self._allocations = max(self._allocations, allocations or 0)
        if peak is not None:
            before = self._peaks.setdefault(device, peak)
            percent, least = _RISEN
            self._risen |= peak > before + max(before // 100 * percent, least)

    def refuse(self) -> None:
        """End an open window, and call the probe no more."""
        self._forbid()
        self._native = None

    def ask(self, finding: bool) -> None:
        """Request a window for the user now, or soon for a *finding*, which a window would describe in more detail."""
        if finding:
            self._found = True
        else:
            self._wishes.add(ASKED)

    def waits(self) -> None:
        """Request a window, as an allocation has failed and waits for room."""
        if self._interval:
            self._wishes.add(WAITING)

    def profiler_begins(self, *_: Any, **__: Any) -> None:
        """End an open window, and open none: the script starts a profiler, which must not find a recording."""
        self._profilers += 1
        self._forbid()

    def profiler_began(self, _: object) -> None:
        """Note that the profiler has started, or failed to start. TensorFlow itself reports until when it is on."""
        self._profilers -= 1
        if self._native is not None:
            self._native.permit()

    def server_begins(self, server: str = "profiler_server") -> None:
        """Open no window from now on: the script starts a *server*, which starts profilers without Python."""
        if not self._served:
            self._served = server
            self._forbid()

    def _forbid(self) -> None:
        for recording in (self._early, self._native):
            if recording is not None:
                recording.forbid()

    def work(self, devices: "list[str]", function: str, stopping: bool) -> None:
        """Do what is due. *devices* are the names of those that are read; with *stopping*, the process ends.

        *function* is the name of the one that is called most often, as its calls are the steps.
        """
        self._function = function
        native = self._native
        if self._early is not None and self._early.is_over(self._allocations):
            self._early.forbid()
        if native is None:
            if self.expected and not self._profilers and self.wanted and self._pools(devices):
                self.expected = False
                try:
                    self._early = EarlyRecording(tensorflow_folder())
                except AttributeError:
                    pass  # TensorFlow has these functions since 2.18
            if ASKED in self._wishes:
                self._wishes.clear()
                self._say_missing(ASKED, "no_probe", self._pools(devices))
            return
        awaited = self._awaited
        if awaited is not None:
            newest = native.progress()
            if newest is not None and newest.began_ns != self._newest_ns:
                self._open, self._awaited, self._count = awaited, None, awaited.number
        if self._open is not None:
            self._look(native, self._open, stopping)
        window = self._open
        if stopping or not (window is None or (window.opened == START and window.reading is None)):
            return
        why = self._due()
        if why is None:
            if window is None:
                self._await_peak(native, self._pools(devices))
        elif window is None:
            self._start(native, why, devices)
        else:
            found = native.progress()
            window.reading, window.completed = why, found.completed if found is not None else 0
            native.complete()

    def next(self) -> Optional[float]:
        """Return when, by the monotonic clock, there is something to do; ``None`` while there is nothing."""
        if self._native is None:
            return None
        if self._open is not None:
            return monotonic() + _LOOK_S
        if self._wishes:
            return max(monotonic(), self._retry_at)
        if not self._opens_itself:
            return None
        return self._rests_until if self._found else max(self._rests_until, self._next)

    def _due(self) -> Optional[str]:
        now = monotonic()
        if now < self._retry_at:
            return None
        for opened in (START, WAITING, ASKED):
            if opened in self._wishes:
                self._wishes.remove(opened)
                return opened
        if not self._opens_itself or now < self._rests_until:
            return None
        if self._risen and self._open is not None:  # else the probe has seen it, and has opened a window
            return PEAK
        if self._found:
            return FINDING
        return INTERVAL if now >= self._next else None

    def _start(self, native: NativeWindows, opened: str, devices: "list[str]") -> None:
        pools = self._pools(devices)
        if self._served or self._folder is None:
            self._say_missing(opened, self._served or "no_folder", pools)
            self._rests_until = float("inf")
            return
        if not pools:  # none is read yet; a session's pool comes later
            if opened == START:
                self._wishes.add(START)
            elif opened == ASKED:
                self._say_missing(ASKED, "no_pool", [])
            self._retry_at = self._next = monotonic() + 1.0
            return
        done = native.start(*self._wanted(opened, pools))
        if done:
            self._count += 1
            self._open, self._awaited, self._early = _Open(self._count, opened, pools), None, None
            return
        if done is None:
            self._native = None
            self._say_missing(opened, "no_events", pools)
        elif opened in (ASKED, WAITING):
            self._say_missing(opened, "profiler", pools)
        # Otherwise another attempt follows.
        self._retry_at = self._next = monotonic() + min(self._interval or 1.0, 1.0)

    def _wanted(self, opened: str, pools: "list[str]") -> "tuple[str, list[tuple[int, int]], str, Limits]":
        path = f"{self._folder}/{self._messenger.pid}.{self._count + 1}.window"
        limits = {START: _START, WAITING: _EMERGENCY}.get(opened, _STEP)
        return path, [place_of(name) for name in pools], self._function.rpartition(".")[2], limits

    def _await_peak(self, native: NativeWindows, pools: "list[str]") -> None:
        """Have the probe open a window as soon as a peak has risen.

        It does not have to wait until others have paid off: a peak cannot rise by a tenth often.
        """
        if not pools or self._folder is None or self._served or not self._opens_itself or self._count == 0:
            return
        if self._awaited is not None and self._awaited.pools == pools:
            return
        newest = native.progress()
        if newest is not None:
            self._newest_ns = newest.began_ns
            if native.await_peak(_RISEN, *self._wanted(PEAK, pools)):
                self._awaited = _Open(self._count + 1, PEAK, pools)

    def _pools(self, devices: "list[str]") -> "list[str]":
        """Return the pools of *devices*, and that of pinned memory beside those of GPUs."""
        pools = [name for name in devices if name != "CPU:0"] + (["CPU:0"] if uses_cpu_pool() else [])
        return [*pools, PINNED_NAME] if any(name.startswith("GPU") for name in pools) else pools

    def _look(self, native: NativeWindows, window: _Open, stopping: bool) -> None:
        """Check how far the *window* is, and report it."""
        until = monotonic() + _GOODBYE_S
        if stopping:
            native.end(BY_EXIT)
        found = native.progress()
        while stopping and found is not None and found.running and monotonic() < until:
            pause(0.002)
            found = native.progress()
        if found is None:  # in a forked child
            self._open = None
        elif not found.running:
            self._open = None
            self._ended(window, found)
        elif window.reading is not None and found.completed > window.completed:
            self._completed(window, found, window.reading)
        elif found.bytes > window.bytes and monotonic() > window.told + _PARTS_S:
            window.bytes, window.told = found.bytes, monotonic()
            self._tell(window, found, None)

    def _completed(self, window: _Open, found: Progress, why: str) -> None:
        """Have the engine read the *window* of the start, which goes on. Its next reading comes after half its age."""
        now = monotonic()
        if why in (ASKED, WAITING) or found.allocations > window.allocations:
            self._tell(window, found, None, why)
            window.bytes, window.told = found.bytes, now
        window.reading, window.allocations = None, found.allocations
        self._peaks.clear()
        self._risen = self._found = False
        self._next = self._rests_until = now + min(self._interval, max(_READS_S, (now - window.since) / 2))

    def _ended(self, window: _Open, found: Progress) -> None:
        now = monotonic()
        self._peaks.clear()
        self._risen = self._found = False
        rest = 0.0 if window.opened == START else found.cost_s / SHARE
        self._rests_until, self._next = now + rest, now + max(self._interval, rest)
        self._tell(window, found, CLOSED[found.closed])

    def _tell(self, window: _Open, found: Progress, closed: Optional[str], reading: Optional[str] = None) -> None:
        self._messenger.send(
            "window",
            window=window.number,
            opened=window.opened,
            closed=closed,
            last=closed is not None,
            reading=reading,
            bytes=found.bytes,
            pools=window.pools,
            function=found.function,
            cost_us=int(found.cost_s * 1e6),
        )

    def _say_missing(self, opened: str, why: str, pools: "list[str]") -> None:
        """Report that there is no window of *pools*: once, or at each request. ``events/holders.py`` explains *why*."""
        if opened != ASKED and why in self._missing_told:
            return
        self._missing_told.add(why)
        self._messenger.send("window", window=self._count, opened=opened, pools=pools, windowless=why, **_NO_FILE)
