"""A recording, replayed at the user's pace."""

import asyncio
import os
import pickle
import time
import zlib
from array import array
from bisect import bisect_left
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from itertools import takewhile

from tfmemtop import recording
from tfmemtop.events import Allocator, Command, DeviceReading, Event, ProcessReadings
from tfmemtop.recording import BEGINNING, Place
from tfmemtop.recording.outline import outlined
from tfmemtop.session.source import Batch
from tfmemtop.state import State, apply

SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)

_READINGS = (DeviceReading, ProcessReadings, Allocator)
_SLICE_EVENTS = 2000  # so that keys are never held up
_SLICE_S = 0.02
_TICK_S = 0.02  # readings closer together than this are one step
_KEEP_EVERY = 50_000  # events: some 0.3 s to fold again
_KEPT = 64  # states, of some 150 kB each
_LEAD_S = 300.0
"""A recording that can be read from anywhere is read from so long before: the graphs show what came just before."""
_WHOLE_S = 30.0
"""Of that, all readings of the last seconds, which can be stepped through; before, the lowest and highest a second."""

_SHORTEST_WAIT_S, _LONGEST_WAIT_S = 0.03, 0.25


@dataclass(frozen=True, slots=True)
class _Kept:
    """A state as it was after *count* events, the next of which begins at *place*."""

    count: int
    place: Place
    folded_s: float
    damaged: int
    state: bytes  # compressed


class ReplaySource:
    """A recording, at the user's pace, from its beginning.

    Times are seconds of the recording. A seek folds every event between, since the state is a fold
    over all of them: ``seeking`` is true until that is done, in slices of some 20 ms. An empty
    batch says that only the position has moved. At its end a replay stays, paused.

    Only a part of a long recording is folded: from the last place before at which reading can begin. Where the
    recording has no such places, copies of the state are kept now and then, to go back to.

    Raises:
        RecordingError: *path* cannot be read, or is no recording; also from :meth:`batches`.
    """

    live = False

    def __init__(self, path: str | os.PathLike[str], clock: Callable[[], float] = time.monotonic) -> None:
        self.recording = recording.read(path)
        self.length_s = self.recording.duration()
        self.paused = False
        self.speed = 1.0
        self._clock = clock
        self._position = 0.0  # at the time `_since` of the clock
        self._since = clock()
        self._wake = asyncio.Event()
        self._closed = False
        self.damaged = 0
        """Lines left out so far because they could not be read."""
        self._stepping = False
        self._jumping = False  # whether what lies between may be left out
        self._began = 0.0
        self._ticks = array("d")  # when readings were made, as far as they have been seen since `_began`
        self.state = State()
        self._has_starts = self.recording.start_before(self.length_s) is not None
        self._kept: list[_Kept] = []
        self._spacing = _KEEP_EVERY
        self._rewind()

    @property
    def position_s(self) -> float:
        """Where the replay is, or while ``seeking``, where it goes."""
        return self._position

    @property
    def folded_s(self) -> float:
        """Up to where events have been handed out."""
        return self._folded

    @property
    def seeking(self) -> bool:
        """Whether events before the position are still to come."""
        return self._behind or self._stepping or (self._next is not None and self._due(self._next))

    @property
    def at_end(self) -> bool:
        """Whether the position is the recording's end."""
        return self._position >= self.length_s

    def toggle_pause(self) -> None:
        """Pause, or go on; at the end, from the beginning."""
        self._advance()
        if self.paused and self.at_end:
            self.seek(0.0)
        self.paused = not self.paused
        self._wake.set()

    def seek(self, position_s: float) -> None:
        """Go to a time, within the recording."""
        self._position = min(max(0.0, position_s), self.length_s)
        self._behind, self._stepping, self._jumping = True, False, True
        self._since = self._clock()
        self._wake.set()

    def seek_by(self, seconds: float) -> None:
        """Go forward or back."""
        self._advance()
        self.seek(self._position + seconds)

    def step(self, direction: int) -> None:
        """Pause, and go to the next reading (+1) or the one before (-1)."""
        self._advance()
        self.paused = True
        if direction > 0:
            self._stepping = True
            self._wake.set()
            return
        before = self._ticks_before()
        if not before and self._began:
            self._look_back()
            before = self._ticks_before()
        self.seek(self._ticks[before - 1] + _TICK_S if before else 0.0)

    def _ticks_before(self) -> int:
        return bisect_left(self._ticks, self._position - _TICK_S - 1e-6)

    def _look_back(self) -> None:
        """Learn when readings were made just before `_began`."""
        other = recording.read(self.recording.path)
        start = other.start_before(self._began - 1e-6)
        earlier = other.events(start.place if start else BEGINNING)
        before = takewhile(lambda event: event.t <= self._began, earlier)
        ticks, self._ticks = array("d", (t for t in self._ticks if t > self._began)), array("d")
        for event in before:
            self._note(event)
        self._ticks.extend(ticks)
        self._began = start.t if start else 0.0

    def _note(self, event: Event) -> None:
        """Note when *event* happened, if it is a reading."""
        if isinstance(event, _READINGS) and (not self._ticks or event.t > self._ticks[-1] + _TICK_S):
            self._ticks.append(event.t)

    def change_speed(self, step: int) -> None:
        """The next higher speed (+1) or lower one (-1), if there is one."""
        self._advance()
        self.speed = SPEEDS[min(max(0, SPEEDS.index(self.speed) + step), len(SPEEDS) - 1)]
        self._wake.set()

    async def batches(self) -> AsyncIterator[Batch]:
        """Events up to the position, as it moves.

        Raises:
            RecordingError: the file can no longer be read.
        """
        while not self._closed:
            self._wake.clear()
            if not self.seeking:
                self._advance()
            if self._folded > self._position:
                self._rewind()
            elif self._jumping:
                self._jump()
            self._jumping = False
            yield self._slice()
            self._keep()
            if self._closed:
                return
            if self.seeking:
                await asyncio.sleep(0)  # keys first
            else:
                await self._wait()

    async def send(self, command: Command) -> None:
        """Nothing: what was recorded cannot be steered."""

    async def close(self) -> None:
        """End the iteration."""
        self._closed = True
        self._wake.set()

    def _rewind(self) -> None:
        """Begin again from the newest place before the position that can be begun from, or from the beginning."""
        if self._has_starts and self._jump(back=True):
            return
        kept = next((kept for kept in reversed(self._kept) if kept.folded_s <= self._position), None)
        self._begin(kept or _Kept(0, BEGINNING, 0.0, 0, b""))
        self._began = 0.0  # all that was skipped has been read before
        if self._has_starts:
            self._ticks = array("d")
        self.state = pickle.loads(zlib.decompress(kept.state)) if kept else State()

    def _jump(self, back: bool = False) -> bool:
        """Leave out what lies between here and the position, as far as that can be; return whether it could."""
        start = self.recording.start_before(self._position - _LEAD_S) if self._has_starts else None
        if start is None or (start.t <= self._folded and not back):
            return False
        self._begin(_Kept(0, start.place, start.t, 0, b""), all_from=self._position - _WHOLE_S)
        self._ticks = array("d")
        self.state = State()
        for event in start.so_far:
            apply(self.state, event)
        return True

    def _begin(self, start: _Kept, all_from: float = 0.0) -> None:
        events = self.recording.events(start.place)
        self._events: Iterator[Event] = outlined(events, all_from, stretch_s=1.0) if all_from else events
        self._count, self._folded, self._damaged_before = start.count, start.folded_s, start.damaged
        self._began = max(start.folded_s, all_from)
        self._behind = True
        self._fetch()

    def _fetch(self) -> None:
        # Damaged lines after this event are met, and counted, on the way to the next.
        self._place, self._damaged_here = self.recording.place, self._damaged_before + self.recording.damaged
        self._next: Event | None = next(self._events, None)
        self.damaged = max(self.damaged, self._damaged_before + self.recording.damaged)

    def _keep(self) -> None:
        """Keep the state, now that every event so far has been folded into it."""
        newest = self._kept[-1].count if self._kept else 0
        if self._has_starts or self._count < newest + self._spacing:
            return
        state = zlib.compress(pickle.dumps(self.state, pickle.HIGHEST_PROTOCOL), 1)
        self._kept.append(_Kept(self._count, self._place, self._folded, self._damaged_here, state))
        if len(self._kept) >= _KEPT:
            del self._kept[::2]
            self._spacing *= 2

    def _advance(self) -> None:
        """Move the position to where the clock has it."""
        now = self._clock()
        if not (self.paused or self._behind):
            self._position = min(self._position + (now - self._since) * self.speed, self.length_s)
            # A reading that was stamped out of order must not hold back the end.
            self.paused = self.at_end
        self._since = now

    def _due(self, event: Event) -> bool:
        return event.t <= self._position or self.at_end

    def _slice(self) -> list[Event]:
        """The next events up to the position, as many as can be folded without holding up the screen."""
        batch: list[Event] = []
        end = time.monotonic() + _SLICE_S
        while self._next is not None:
            event = self._next
            reading = isinstance(event, _READINGS)
            if not self._due(event):
                if not self._stepping:
                    break
                self._position = min(event.t + _TICK_S * reading, self.length_s)
                self._stepping = not reading
            if len(batch) >= _SLICE_EVENTS or (len(batch) % 64 == 63 and time.monotonic() > end):
                return batch
            apply(self.state, event)
            batch.append(event)
            # The end lets out whatever is left, also what was stamped later than the last event.
            self._folded = min(max(self._folded, event.t), self.length_s)
            self._note(event)
            self._count += 1
            self._fetch()
        if self._stepping:
            self._stepping = False
            self._position = self.length_s
        if self._behind:
            self._behind = False
            self._since = self._clock()
        return batch

    async def _wait(self) -> None:
        """Until the next event is due, or the user has done something."""
        timeout = None
        if not self.paused:
            ahead = self._next.t - self._position if self._next else 0.0
            timeout = min(max(_SHORTEST_WAIT_S, ahead / self.speed), _LONGEST_WAIT_S)
        try:
            await asyncio.wait_for(self._wake.wait(), timeout)
        except asyncio.TimeoutError:
            pass
