"""The one ordered stream: keeps events in order and passes them to all listeners."""

import time
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from tfmemtop.engine.stream.backlog import Backlog
from tfmemtop.events import Event, Level, Notice, NoticeKind, encode
from tfmemtop.events.unstarted import Unstarted


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
        unstarted: Unstarted | None = None,
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
            unstarted=unstarted,
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
