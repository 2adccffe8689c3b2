"""The one ordered stream: keeps events in order and passes them to all listeners.

A listener that takes them slowly, such as a reader or the file of a recording, has a queue. The other modules here are
its backlog, its readers and its recording.
"""

import math
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from tfmemtop.engine.stream.backlog import Backlog
from tfmemtop.events import Event, Level, Notice, NoticeKind, Output, encode
from tfmemtop.units import MIB


class Line(NamedTuple):
    """An event in the form in which it is sent and recorded: ``line`` is its JSON and a newline."""

    event: Event
    line: bytes


Sink = Callable[[Event], None]
LineSink = Callable[[Line], None]

_TICK_S = 1e-6
_DETAIL = 4096  # characters kept of text from outside


def line_of(event: Event) -> Line:
    """Return *event* with its encoded line."""
    return Line(event, encode(event) + b"\n")


class Stream:
    """All events of a session, in order: each event has a later time than the event before it."""

    def __init__(self) -> None:
        self._zero = time.monotonic()
        self._last = -_TICK_S  # time of the newest event
        self._sinks: list[Sink] = []
        self._line_sinks: list[LineSink] = []
        self._notices: dict[str, Notice] = {}  # the last one of each key
        self.backlog = Backlog()

    def now(self) -> float:
        """Return the seconds since the session began. Can be called in any thread."""
        return self.since_start(time.monotonic())

    def since_start(self, monotonic: float) -> float:
        """Convert a time of the machine's monotonic clock, which all its processes share, to seconds of the session."""
        return round(monotonic - self._zero, 6)

    def publish(self, event: Event) -> None:
        """Pass *event* to the backlog and to all listeners.

        If its time is not later than that of the event before it, its time is moved behind that one.
        """
        if event.t <= self._last:
            # It was made in another thread, or at the same time as other events.
            event = msgspec.structs.replace(event, t=round(self._last + _TICK_S, 6))
        self._last = event.t
        self.backlog.add(event)
        # Line sinks come first: the other sinks may publish further events, and readers must receive all in order.
        if self._line_sinks:
            line = line_of(event)
            for line_sink in tuple(self._line_sinks):
                line_sink(line)
        for sink in tuple(self._sinks):
            sink(event)

    def notice(
        self,
        key: str,
        kind: NoticeKind | None,
        level: Level = Level.WARNING,
        detail: str = "",
        *,
        about: int | None = None,
        count: int | None = None,
    ) -> None:
        """Publish a :class:`Notice` unless the last one of *key* has the same content."""
        detail = detail[:_DETAIL]
        notice = Notice(
            t=self.now(),
            key=key,
            level=level,
            kind=kind,
            detail=detail,
            about=about,
            count=count,
        )
        last = self._notices.get(key)
        if last is None or last.kind is None:
            news = kind is not None
        else:
            news = msgspec.structs.replace(last, t=notice.t) != notice
        if news:
            self._notices[key] = notice
            self.publish(notice)

    def withdraw(self, key: str) -> None:
        """Publish that the notice of *key* no longer holds."""
        self.notice(key, None, Level.INFO)

    def listen(self, sink: Sink) -> None:
        """Pass every event from now on to *sink*."""
        self._sinks.append(sink)

    def listen_to_lines(self, sink: LineSink) -> None:
        """Pass every event from now on to *sink*, with its encoded line. It is encoded once for all such sinks."""
        self._line_sinks.append(sink)

    def forget(self, sink: Sink | LineSink) -> None:
        """Pass no further events to *sink*."""
        for sinks in (self._sinks, self._line_sinks):
            if sink in sinks:
                sinks.remove(sink)  # type: ignore[arg-type]


QUEUE = 4 * MIB
"""Bytes of droppable events that may wait for one reader before its oldest are dropped."""
OUTPUT_QUEUE = 512 * 1024
"""Bytes of the script's output that may wait for one reader before the oldest output is left out."""

_QUEUE_WHOLE = 64 * MIB


class LineQueue:
    """Lines in order. A queue that is too long loses its oldest droppable events and output, and an event tells it."""

    def __init__(self, stream: Stream, droppable: int = QUEUE, output: int = OUTPUT_QUEUE) -> None:
        """*droppable* and *output* are the bytes of these events that may wait."""
        self._stream = stream
        self._most_droppable, self._most_output = droppable, output
        self._queue: deque[Line] = deque()
        # Bytes in the queue: of all events, of droppable ones, of output.
        self._waiting = self._droppable = self._output = 0
        self._dropped = 0  # events that were left out

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def overflows(self) -> bool:
        """Whether far too many bytes wait, although everything was left out that can be left out."""
        return self._waiting > _QUEUE_WHOLE

    def push(self, line: Line) -> None:
        """Add *line* at the end."""
        self._add(self._queue, line)
        if self._droppable > self._most_droppable:
            self._drop()
        if self._output > self._most_output:
            self._skip_output()

    def take(self, size: float = math.inf) -> list[Line]:
        """Remove and return the first lines: one more than fit into *size* bytes, or all."""
        lines = []
        while self._queue and size > 0:
            one = self._queue.popleft()
            self._count(one, -1)
            size -= len(one.line)
            lines.append(one)
        return lines

    def _add(self, queue: deque[Line], one: Line) -> None:
        queue.append(one)
        self._count(one, 1)

    def _count(self, one: Line, sign: int) -> None:
        size = len(one.line) * sign
        self._waiting += size
        if one.event.droppable:
            self._droppable += size
        elif isinstance(one.event, Output):
            self._output += size

    def _drop(self) -> None:
        kept: deque[Line] = deque()
        for one in self._queue:
            if one.event.droppable and self._droppable > self._most_droppable // 2:
                self._count(one, -1)
                self._dropped += 1
            else:
                kept.append(one)
        kind, level = NoticeKind.READER_SLOW, Level.WARNING
        notice = Notice(t=self._stream.now(), key="slow_reader", level=level, kind=kind, count=self._dropped)
        self._add(kept, line_of(notice))
        self._queue = kept

    def _skip_output(self) -> None:
        """Leave out the oldest output. The next output of the same run contains how many bytes are missing."""
        kept: deque[Line] = deque()
        skipped: dict[int, int] = {}  # bytes, by run
        for one in self._queue:
            event = one.event
            if isinstance(event, Output) and self._output > self._most_output // 2:
                self._count(one, -1)
                skipped[event.run] = skipped.get(event.run, 0) + event.skipped + len(event.text.encode())
            elif isinstance(event, Output) and (missing := skipped.pop(event.run, 0)):
                self._count(one, -1)
                self._add(kept, line_of(msgspec.structs.replace(event, skipped=event.skipped + missing)))
            else:
                kept.append(one)
        self._queue = kept
