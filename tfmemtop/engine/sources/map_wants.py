"""Who wants which memory maps: only those are read."""

from collections.abc import Callable, Hashable
from typing import Any

from tfmemtop.engine.stream.stream import Stream
from tfmemtop.events import Event, MapWanted, Probe

RECORDED_PACE_S, KEPT_PACE_S = 1.0, 10.0
"""Seconds between two maps for a recording; for one that the user did not ask for."""

FASTEST_S = 0.1


class Maps:
    """Collects which maps the readers want, and tells each hook; with *every_s*, all of them so far apart.

    *send* takes a command to the hook, or to what reads the process from outside.
    """

    def __init__(
        self, stream: Stream, send: Callable[[int, dict[str, Any]], object], *, every_s: float | None = None
    ) -> None:
        self._stream = stream
        self._send = send
        self._every_s = every_s
        self._wishes: dict[Hashable, dict[tuple[int, str], MapWanted]] = {}

    def begin(self) -> None:
        """Start listening to the stream."""
        self._stream.listen(self._take)

    def want(self, reader: Hashable, wish: MapWanted) -> None:
        """*reader* wants this map from now on, or no longer."""
        wishes = self._wishes.setdefault(reader, {})
        if wish.pace_s is None:
            wishes.pop((wish.pid, wish.device), None)
        else:
            wishes[wish.pid, wish.device] = wish
        self._tell(wish.pid)

    def forget(self, reader: Hashable) -> None:
        """*reader* has gone, and its wishes with it."""
        for pid in {pid for pid, _ in self._wishes.pop(reader, {})}:
            self._tell(pid)

    def _take(self, event: Event) -> None:
        if isinstance(event, Probe) and event.state in ("direct", "loaded"):
            self._tell(event.pid)

    def _tell(self, pid: int) -> None:
        paces: dict[tuple[str | None, int | None], float] = {}
        for wishes in self._wishes.values():
            for wish in wishes.values():
                if wish.pid == pid and wish.pace_s is not None:
                    key = wish.device, wish.region
                    paces[key] = min(paces.get(key, wish.pace_s), max(wish.pace_s, FASTEST_S))
        if self._every_s is not None:
            paces[None, None] = self._every_s
        wanted = [[device, region, pace] for (device, region), pace in paces.items()]
        self._send(pid, {"do": "maps", "wanted": wanted})
