"""Which map the engine reads for this screen: only the one that the user looks at. Pure."""

from tfmemtop.events import MapWanted

PACE_S = 1.0
"""Seconds between two maps while the user looks at one."""


class MapRequests:
    """Stores which map this screen has last requested."""

    def __init__(self) -> None:
        self._asked: MapWanted | None = None

    def change(self, wish: MapWanted | None) -> list[MapWanted]:
        """Return the commands to the engine that make *wish* the only map requested; with ``None``, no map is."""
        before, self._asked = self._asked, wish
        if wish == before:
            return []
        commands = []
        if before is not None and (wish is None or (wish.pid, wish.device) != (before.pid, before.device)):
            commands.append(MapWanted(pid=before.pid, device=before.device, pace_s=None))
        return commands + ([wish] if wish is not None else [])
