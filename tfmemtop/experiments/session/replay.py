"""The replay of a recording, at the speed that the user chooses."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator

from tfmemtop.events import Allocator, Command, DeviceReading, Event, ProcessReadings, recording
from tfmemtop.events.recording import BEGINNING, Place, RecordingError
from tfmemtop.events.recording.outline import outlined
from tfmemtop.experiments.session import Batch
from tfmemtop.state import State, apply

SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)

_READINGS = (DeviceReading, ProcessReadings, Allocator)
_SLICE_EVENTS = 2000  # events folded before keys are handled again, so that keys never wait long
_SLICE_S = 0.02
_TICK_S = 0.02  # readings closer together than this are one step
_LEAD_S = 300.0
"""Reading begins so long before a position if the recording has places to begin: the graphs show this time too."""
_WHOLE_S = 30.0
"""In these last seconds before a position all readings are used, so that the user can step through them.

Before that, only the lowest and the highest reading of each second are.
"""

_SHORTEST_WAIT_S, _LONGEST_WAIT_S = 0.03, 0.25


class ReplaySource:
    """A source that replays a recording from its beginning, at the speed that the user chooses.

    Times are seconds since the recording began. A seek folds every event up to the new position, since the state is
    a fold over all events. This is done in slices of some 20 ms, and ``seeking`` is true until it is done. An empty
    batch means that only the position has moved. At the end of the recording the replay stays, paused.

    A long recording contains places at which reading can begin. A seek in it folds only the events from such a place
    before the new position. A recording as plain text has no such places: a seek back folds all events before the new
    position again, 100,000 of them in about 0.6 s.

    Raises:
        RecordingError: *path* cannot be read or is not a recording. :meth:`batches` can raise it too.
    """

    live = False

    def __init__(self, path: str | os.PathLike[str], clock: Callable[[], float] = time.monotonic) -> None:
        self.recording = recording.read(path)
        self.length_s = self.recording.duration()
        self.paused = False
        self.speed = 1.0
        self._clock = clock
        self.position_s = 0.0
        """The time at which the replay is; while ``seeking``, the time to which it goes."""
        self._since = clock()  # when the replay was there
        self._wake = asyncio.Event()
        self._closed = False
        self.damaged = 0
        """Lines left out so far because they could not be read."""
        self._stepping = False
        self._steps_back = 0  # that the user has asked for and that are not found yet
        self._jumping = False  # whether the events between here and the position may be skipped
        self.state = State()
        self._has_starts = self.recording.start_before(self.length_s) is not None
        self._rewind()

    @property
    def seeking(self) -> bool:
        """Whether :meth:`batches` has not yet returned all events before the position."""
        ahead = self._next is not None and self._due(self._next)
        return self._behind or self._stepping or self._steps_back > 0 or ahead

    @property
    def at_end(self) -> bool:
        """Whether the position is the recording's end."""
        return self.position_s >= self.length_s

    def toggle_pause(self) -> None:
        """Pause the replay, or let it go on. At the end of the recording it begins again."""
        self._advance()
        if self.paused and self.at_end:
            self.seek(0.0)
        self.paused = not self.paused
        self._wake.set()

    def seek(self, position_s: float) -> None:
        """Go to the time *position_s*, or to the nearest that is within the recording."""
        self.position_s = min(max(0.0, position_s), self.length_s)
        self._behind, self._jumping = True, True
        self._stepping, self._steps_back = False, 0
        self._since = self._clock()
        self._wake.set()

    def seek_by(self, seconds: float) -> None:
        """Go forward or back."""
        self._advance()
        self.seek(self.position_s + seconds)

    def step(self, direction: int) -> None:
        """Pause, and go to the next reading (+1) or the one before (-1)."""
        self._advance()
        self.paused = True
        self._stepping = direction > 0
        self._steps_back = 0 if direction > 0 else self._steps_back + 1
        self._wake.set()

    async def _step_back(self) -> None:
        """Go to the step before the position. It is searched in a thread: in plain text the search takes long."""
        try:
            found = await asyncio.to_thread(self._step_before, self.position_s)
        except RecordingError:  # the events before the present one are read again now, which reports it
            found = self.position_s - _TICK_S
        if further := self._steps_back:  # else the user has gone elsewhere meanwhile
            self.seek(found)
            self._steps_back = further - 1

    def _step_before(self, position_s: float) -> float:
        """Return the position of the step before *position_s*. The recording is read once more for it."""
        earlier = recording.read(self.recording.path)
        start = earlier.start_before(position_s - _WHOLE_S)
        step = 0.0
        last = -1.0  # the first of the readings that make the newest step
        for event in earlier.events(start.place if start else BEGINNING):
            if event.t >= position_s - _TICK_S - 1e-6:
                break
            if isinstance(event, _READINGS) and event.t > last + _TICK_S:
                last = event.t
                step = last + _TICK_S
        return step

    def change_speed(self, step: int) -> None:
        """Take the next higher speed (+1) or the next lower one (-1), if there is one."""
        self._advance()
        self.speed = SPEEDS[min(max(0, SPEEDS.index(self.speed) + step), len(SPEEDS) - 1)]
        self._wake.set()

    async def batches(self) -> AsyncIterator[Batch]:
        """Return the events up to the position, as it moves.

        Raises:
            RecordingError: the file can no longer be read.
        """
        while not self._closed:
            self._wake.clear()
            if self._steps_back:
                await self._step_back()
            if not self.seeking:
                self._advance()
            if self.folded_s > self.position_s:
                self._rewind()
            elif self._jumping:
                self._jump()
            self._jumping = False
            yield self._slice()
            if self._closed:
                return
            if self.seeking:
                await asyncio.sleep(0)  # handle keys first
            else:
                await self._wait()

    async def send(self, command: Command) -> None:
        """Do nothing: a recording takes no commands."""

    async def close(self) -> None:
        """End the iteration."""
        self._closed = True
        self._wake.set()

    def _rewind(self) -> None:
        """Begin again at the last place before the position at which that is possible, else at the beginning."""
        if self._has_starts and self._jump(back=True):
            return
        self._begin(BEGINNING, 0.0)
        self.state = State()

    def _jump(self, back: bool = False) -> bool:
        """Skip events: begin at the last place that is at least `_LEAD_S` before the position.

        Return false, and change nothing, if there is no such place, or if it is not after the events returned so far;
        with *back* it may be before them.
        """
        start = self.recording.start_before(self.position_s - _LEAD_S) if self._has_starts else None
        if start is None or (start.t <= self.folded_s and not back):
            return False
        self._begin(start.place, start.t, all_from=self.position_s - _WHOLE_S)
        self.state = State()
        for event in start.so_far:
            apply(self.state, event)
        return True

    def _begin(self, place: Place, folded_s: float, all_from: float = 0.0) -> None:
        events = self.recording.events(place)
        self._events: Iterator[Event] = outlined(events, all_from, stretch_s=1.0) if all_from else events
        self.folded_s = folded_s
        """The time up to which events have been returned by :meth:`batches`."""
        self._behind = True
        self._fetch()

    def _fetch(self) -> None:
        self._next: Event | None = next(self._events, None)
        self.damaged = max(self.damaged, self.recording.damaged)

    def _advance(self) -> None:
        """Move the position on by the time that has passed, times the speed; not while paused or seeking."""
        now = self._clock()
        if not (self.paused or self._behind):
            self.position_s = min(self.position_s + (now - self._since) * self.speed, self.length_s)
            # The time alone decides: a last event whose time is out of order must not delay the end.
            self.paused = self.at_end
        self._since = now

    def _due(self, event: Event) -> bool:
        return event.t <= self.position_s or self.at_end

    def _slice(self) -> list[Event]:
        """Return the next events up to the position, as many as can be folded without delaying the screen."""
        batch: list[Event] = []
        end = time.monotonic() + _SLICE_S
        while self._next is not None:
            event = self._next
            reading = isinstance(event, _READINGS)
            if not self._due(event):
                if not self._stepping:
                    break
                self.position_s = min(event.t + _TICK_S * reading, self.length_s)
                self._stepping = not reading
            if len(batch) >= _SLICE_EVENTS or (len(batch) % 64 == 63 and time.monotonic() > end):
                return batch
            apply(self.state, event)
            batch.append(event)
            # At the end all remaining events are returned, also those with a time later than the last event's.
            self.folded_s = min(max(self.folded_s, event.t), self.length_s)
            self._fetch()
        if self._stepping:
            self._stepping = False
            self.position_s = self.length_s
        if self._behind:
            self._behind = False
            self._since = self._clock()
        return batch

    async def _wait(self) -> None:
        """Wait until the next event is due or the user has done something."""
        timeout = None
        if not self.paused:
            ahead = self._next.t - self.position_s if self._next else 0.0
            timeout = min(max(_SHORTEST_WAIT_S, ahead / self.speed), _LONGEST_WAIT_S)
        try:
            await asyncio.wait_for(self._wake.wait(), timeout)
        except asyncio.TimeoutError:
            pass
