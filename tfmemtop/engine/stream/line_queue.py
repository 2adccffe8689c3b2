"""The lines that wait for somebody who takes them slowly: a reader, or the file of a recording."""

import math
from collections import deque

import msgspec

from tfmemtop.engine.stream.stream import Line, Stream, line_of
from tfmemtop.events import Level, Notice, NoticeKind, Output
from tfmemtop.units import MIB

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
