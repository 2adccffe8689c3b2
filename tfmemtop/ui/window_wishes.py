"""Windows of allocations for what the screen finds: who grows, and who keeps a pool in pieces."""

from tfmemtop.events import HoldersNow
from tfmemtop.rules import findings
from tfmemtop.rules.asking import AGAIN_S, windows_wanted
from tfmemtop.state import State


class WindowWishes:
    """Asks for windows, so often at most for each process."""

    def __init__(self) -> None:
        self._asked: dict[int, float] = {}  # when, in seconds of the session

    def due(self, state: State) -> list[HoldersNow]:
        """What to tell the engine now."""
        wanted = [
            pid
            for pid in windows_wanted(state, findings(state))
            if state.now - self._asked.get(pid, float("-inf")) >= AGAIN_S
        ]
        self._asked |= dict.fromkeys(wanted, state.now)
        return [HoldersNow(pid=pid, finding=True) for pid in wanted]
