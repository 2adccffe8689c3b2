"""The one ordered stream: stamps every event and hands it to whoever listens."""

import time
from collections.abc import Callable

import msgspec

from tfmemtop.engine.backlog import Backlog
from tfmemtop.events import AnyEvent, Notice

Sink = Callable[[AnyEvent], None]


class Stream:
    """Orders events: ``t`` is given here and nowhere else, so it never runs backwards."""

    def __init__(self) -> None:
        self._zero = time.monotonic()
        self._sinks: list[Sink] = []
        self.backlog = Backlog()

    def now(self) -> float:
        """Seconds since the session began."""
        return self.since_start(time.monotonic())

    def since_start(self, monotonic: float) -> float:
        """Session seconds of a time by the machine's monotonic clock, which its processes share."""
        return round(monotonic - self._zero, 6)

    def publish(self, event: AnyEvent) -> None:
        """Stamp *event*, which the caller has just made and does not keep, and hand it on."""
        msgspec.structs.force_setattr(event, "t", self.now())
        self.backlog.add(event)
        for sink in tuple(self._sinks):
            sink(event)

    def notice(self, key: str, level: str, text: str, remedy: str = "") -> None:
        """Publish a :class:`Notice` unless the last one of that key said the same."""
        notice = msgspec.convert({"t": 0.0, "key": key, "level": level, "text": text, "remedy": remedy}, Notice)
        last = self.backlog.notices.get(key)
        said = (last.level, last.text, last.remedy) if last else (level, "", "")
        if said != (level, text, remedy) and (text or last):
            self.publish(notice)

    def listen(self, sink: Sink) -> None:
        """Hand every event from now on to *sink*."""
        self._sinks.append(sink)

    def forget(self, sink: Sink) -> None:
        """Hand it nothing more."""
        if sink in self._sinks:
            self._sinks.remove(sink)
