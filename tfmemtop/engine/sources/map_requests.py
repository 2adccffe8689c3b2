"""Collects which memory maps the readers request. Only those are read."""

from collections.abc import Hashable

from tfmemtop.engine.sources.source import Send, Source
from tfmemtop.engine.stream.stream import Stream
from tfmemtop.events import Event, MapWanted, Probe, ProbeState

RECORDED_PACE_S, KEPT_PACE_S = 1.0, 10.0
"""Seconds between two maps: for a recording that the user requested, and for one that tfmemtop keeps by itself."""

FASTEST_S = 0.1


class MapRequests(Source):
    """Collects which maps the readers request, and sends each hook those of its process.

    With *every_s*, all maps are requested, so many seconds apart. *send* passes a command on to the hook of a process,
    or to the part that reads the process from outside.
    """

    def __init__(self, stream: Stream, send: Send, *, every_s: float | None = None) -> None:
        super().__init__(stream)
        self._send = send
        self._every_s = every_s
        self._wishes: dict[Hashable, dict[tuple[int, str], MapWanted]] = {}

    def want(self, reader: Hashable, wish: MapWanted) -> None:
        """Note that *reader* requests this map from now on, or, if *wish* has no ``pace_s``, no longer requests it."""
        wishes = self._wishes.setdefault(reader, {})
        if wish.pace_s is None:
            wishes.pop((wish.pid, wish.device), None)
        else:
            wishes[wish.pid, wish.device] = wish
        self._tell(wish.pid)

    def forget(self, reader: Hashable) -> None:
        """Drop all requests of *reader*, which has disconnected."""
        for pid in {pid for pid, _ in self._wishes.pop(reader, {})}:
            self._tell(pid)

    def on_event(self, event: Event) -> None:
        """Handle an event of the stream."""
        if isinstance(event, Probe) and event.state in (ProbeState.DIRECT, ProbeState.LOADED):
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
