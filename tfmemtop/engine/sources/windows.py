"""Makes events from the windows of allocations that hooks write into files in the session's folder.

This is done in a thread of its own. The readings need Python's lock too: ``SWITCH_S`` in ``engine/watch.py`` bounds how
long they wait for it.
"""

import asyncio
import gc
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from tfmemtop.engine.sources.holders_event import nothing_of
from tfmemtop.engine.sources.source import Send, Source
from tfmemtop.engine.sources.window_events import Known, events_of
from tfmemtop.engine.sources.window_file import SUFFIX, file_name, read_window
from tfmemtop.engine.stream import Stream
from tfmemtop.engine.stream.complaints import complain
from tfmemtop.events import (
    Census,
    Closed,
    Damage,
    Event,
    Holders,
    HookEnd,
    NoticeKind,
    Output,
    ScriptPhase,
    Trace,
    Window,
    Windowless,
)
from tfmemtop.events.allocations import FOREVER, WindowAllocations, unpack
from tfmemtop.events.damage import damage_of, damage_text
from tfmemtop.state.operation_names import as_written

if TYPE_CHECKING:
    from tfmemtop.findings.rules.leaks import WindowWishes


LINES_ASKED = 64
"""The most operations whose lines in the script are requested after a window.

They are the largest operations whose lines were not requested before.
"""

_ASKED = 4096  # operations of one process whose lines are requested at most
_LINES_BYTES = 24 * 1024  # of operations' names in one message
_NAMES = 256  # of phases of one process
_WAITING = 16  # windows that wait to be read, at most; a hook makes one a minute


class _Made(NamedTuple):
    """The events of a window, and the operations that hold most at its peaks, the largest first."""

    events: Sequence[Holders | Trace]
    operations: Sequence[str] = ()


class WindowReader(Source):
    """Reads the windows in *folder* and publishes their events."""

    def __init__(self, stream: Stream, send: Send, folder: Path) -> None:
        super().__init__(stream)
        self._send = send
        self._folder = folder
        self._thread = ThreadPoolExecutor(1, "windows")
        self._loop = asyncio.get_running_loop()
        self._working: deque[tuple[Window | None, Future[_Made]]] = deque()
        self._open: dict[int, Window] = {}  # by process: a window that goes on, whose beginning can be read
        self._asked: dict[int, set[str]] = {}  # by process: operations
        self._phases: dict[int, dict[str, ScriptPhase]] = {}  # by process: the one of each name with the highest peak
        self._known: dict[int, Known] = {}  # by process; used in the thread only

    def close(self) -> None:
        """Stop."""
        super().close()
        self._thread.shutdown(wait=False, cancel_futures=True)

    def drain(self) -> None:
        """Publish the events of all windows until now, so that the end of a run is published after them."""
        while self._working:
            self._working[0][1].exception()  # waits until the window has been read
            self._publish_first()

    def take(self, window: Window) -> None:
        """Handle a hook's message about a window.

        What is complete is read. A window that goes on is stored until its process ends. If none was opened, that is
        published.
        """
        if window.windowless is not None:
            self._publish_nothing(window, window.windowless)
        elif window.last:
            self._open.pop(window.pid, None)
            self._read(window)
        else:
            self._open[window.pid] = window
            if window.reading is not None:
                self._read(window)

    def _read(self, window: Window) -> None:
        if len(self._working) >= _WAITING:
            if window.last:
                self._delete(window)
                self._publish_nothing(window, Damage.SUPERSEDED)
            return
        self._work(window, self._thread.submit(self._made, window, [*self._phases.get(window.pid, {}).values()]))

    def _work(self, window: Window | None, future: "Future[_Made]") -> None:
        self._working.append((window, future))
        future.add_done_callback(self._wake)

    def _wake(self, _: object) -> None:
        with suppress(RuntimeError):  # the loop has ended, and with it the session
            self._loop.call_soon_threadsafe(self._publish_done)

    def _publish_done(self) -> None:
        while self._working and self._working[0][1].done():
            self._publish_first()

    def _publish_first(self) -> None:
        window, future = self._working.popleft()
        if window is None or future.cancelled():
            return
        error = future.exception()
        if error is None:
            self._publish(window, future.result())
        else:
            self._publish_nothing(window, *damage_of(error))

    def _publish_nothing(self, window: Window, why: Windowless | Damage, detail: str = "") -> None:
        for event in nothing_of(window, why, detail, t=self._stream.now()):
            self._stream.publish(event)
        if not window.pools:
            pid = window.pid
            text = f"their file cannot be read: {damage_text(why, detail)}" if isinstance(why, Damage) else why.text
            self._stream.notice(f"no-window-{pid}", NoticeKind.NO_WINDOW, detail=text, about=pid)

    def _publish(self, window: Window, made: _Made) -> None:
        for event in made.events:
            self._stream.publish(event)
        self._ask_for_lines(window.pid, made.operations)

    def _ask_for_lines(self, pid: int, operations: Sequence[str]) -> None:
        asked = self._asked.setdefault(pid, set())
        wanted: list[str] = []
        size = 0
        for operation in map(as_written, operations):
            if operation in asked:
                continue
            size += len(operation.encode()) + 4
            if len(wanted) == LINES_ASKED or size > _LINES_BYTES or len(asked) >= _ASKED:
                break
            asked.add(operation)
            wanted.append(operation)
        if wanted:
            self._send(pid, {"do": "lines", "operations": wanted})

    def on_event(self, event: Event) -> None:
        """Handle an event of the stream."""
        if isinstance(event, ScriptPhase) and event.ended is not None:
            phases = self._phases.setdefault(event.pid, {})
            before = phases.get(event.name)
            if len(phases) < _NAMES if before is None else _height(event) > _height(before):
                phases[event.name] = event
        if not isinstance(event, HookEnd):
            return
        window = self._open.pop(event.pid, None)
        if window is not None:
            # The process has ended within the window. What the file contains until then is still valid.
            self._read(msgspec.structs.replace(window, closed=Closed.EXIT, last=True, reading=None))
        self._asked.pop(event.pid, None)
        self._phases.pop(event.pid, None)
        self._work(None, self._thread.submit(self._clear, event.pid))

    def _delete(self, window: Window) -> None:
        with suppress(OSError):
            (self._folder / file_name(window.pid, window.window)).unlink(missing_ok=True)

    # These run in the thread:

    def _made(self, window: Window, phases: Iterable[ScriptPhase]) -> _Made:
        """Read *window*, delete its file unless it goes on, and return its events, also those of *phases*.

        Raises:
            OSError: the file cannot be read.
            Damaged: its content is not that of a window.
        """
        name = file_name(window.pid, window.window)
        # Nothing here makes reference cycles. To search so many records for cycles would delay the readings.
        gc.disable()
        try:
            file = read_window(self._folder, name, window.bytes)
            known = self._known.setdefault(window.pid, Known())
            now = self._stream.now()
            events = [*events_of(window, file, known, self._stream.since_start, t=now, phases=phases)]
            return _Made(events, _largest_operations(events))
        finally:
            gc.enable()
            if window.last:
                self._delete(window)

    def _clear(self, pid: int) -> _Made:
        self._known.pop(pid, None)
        with suppress(OSError):
            for path in self._folder.glob(f"{pid}.*{SUFFIX}"):
                path.unlink(missing_ok=True)
        return _Made(())


def _height(phase: ScriptPhase) -> int:
    return max(phase.peaks.values(), default=0)


def _largest_operations(events: Iterable[Holders | Trace]) -> list[str]:
    """Return the names of the operations that hold most at the peaks, the largest first."""
    sizes: dict[str, int] = {}
    for event in events:
        if isinstance(event, Holders):
            found = unpack(event.packed, WindowAllocations)
            for place, begin, end in zip(found.holdings, found.begins, found.ends, strict=True):
                operation = found.kinds[place].operation
                if begin <= event.peak_at and (end == FOREVER or end > event.peak_at) and operation is not None:
                    name = found.names[operation]
                    sizes[name] = sizes.get(name, 0) + found.kinds[place].size
    return sorted(sizes, key=lambda name: -sizes[name])


LOOK_S = 5.0
"""Seconds between two looks."""


class FindingWindows(Source):
    """Requests a window from the hooks of a process where it would make a finding more precise."""

    def __init__(self, stream: Stream, send: Send) -> None:
        super().__init__(stream)
        self._send = send
        self._looks = False  # not before there is a census, or a window: most scripts have none
        self._events: list[Event] = []
        self._wishes: WindowWishes | None = None  # used in a thread only

    def on_event(self, event: Event) -> None:
        """Handle an event of the stream."""
        if self._looks:
            if _matters(event):
                self._events.append(event)
        elif isinstance(event, Census) or (isinstance(event, Holders) and not event.is_missing):
            self._looks = True
            self._events = [kept for kept in self._stream.backlog.events() if _matters(kept)]
            self._keep_doing(self._look_on())

    async def _look_on(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            events, self._events = self._events, []
            try:
                wanted = await asyncio.to_thread(self._wanted, events)
            except Exception as error:
                complain()
                self.close()
                detail = f"{type(error).__name__}: {error}"
                self._stream.notice("windows", NoticeKind.FINDINGS_WITHOUT_WINDOWS, detail=detail)
                return
            for pid in wanted:
                self._send(pid, {"do": "holders", "finding": True})

    # This runs in a thread:

    def _wanted(self, events: list[Event]) -> list[int]:
        if self._wishes is None:
            from tfmemtop.findings.rules.leaks import WindowWishes  # imported here, as most sessions do not need it

            self._wishes = WindowWishes()
        return self._wishes.due(events)


def _matters(event: Event) -> bool:
    return not isinstance(event, Output | Trace)  # megabytes that no rule uses
