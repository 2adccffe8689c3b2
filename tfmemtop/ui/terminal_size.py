"""When the script's terminal gets another size. Pure."""

from tfmemtop.state import State


class TerminalSize:
    """Decides whether the script is told the size of its panel.

    It is told whenever the user has arranged the screen anew, and if the panel has become too small. Processes
    and findings that come and go must not resize the terminal: a panel that is higher shows earlier lines.
    """

    def __init__(self) -> None:
        self._arranged: tuple[object, ...] | None = None  # what the user had chosen the last time
        self._size: tuple[int, int] | None = None

    def told(self, state: State, size: tuple[int, int], arranged: tuple[object, ...]) -> tuple[int, int] | None:
        """*size*, columns and rows of the panel, if the script is to be told; else ``None``.

        *arranged* is what the user has chosen: the size of the terminal, which panels are shown.
        """
        anew = self._arranged not in (None, arranged)
        changed = size != self._size
        self._arranged, self._size = arranged, size
        return size if changed and (anew or not _fits(state, size)) else None


def _fits(state: State, size: tuple[int, int]) -> bool:
    terminal, run = state.terminal, state.run
    if terminal is None:
        return False
    columns, rows = size
    # Between two runs findings come that the next one begins without.
    return columns == terminal.columns and (rows >= terminal.rows or run is None or not run.going)
