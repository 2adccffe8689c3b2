"""Which map the engine has been asked for: only what somebody looks at is read. Pure."""

from tfmemtop.events import MapWanted

PACE_S = 1.0
"""Time between two maps while somebody looks."""


class MapWishes:
    """Keeps the one wish of this screen."""

    def __init__(self) -> None:
        self._asked: MapWanted | None = None

    def change(self, wish: MapWanted | None) -> list[MapWanted]:
        """What to tell the engine so that *wish* holds, and nothing else."""
        before, self._asked = self._asked, wish
        if wish == before:
            return []
        commands = []
        if before is not None and (wish is None or (wish.pid, wish.device) != (before.pid, before.device)):
            commands.append(MapWanted(pid=before.pid, device=before.device, pace_s=None))
        return commands + ([wish] if wish is not None else [])
