"""Decides when the script's terminal gets another size. Pure."""

from tfmemtop.state import State


class TerminalSize:
    """Decides when the script's terminal gets the size of its panel.

    It does so if the size has changed, and either the user has rearranged the screen or the terminal no longer fits
    the panel. Processes and findings that come and go must not resize the terminal otherwise: a panel that is higher
    than the terminal shows earlier lines.
    """

    def __init__(self) -> None:
        self._arranged: tuple[object, ...] | None = None  # what the user had chosen at the last call
        self._size: tuple[int, int] | None = None

    def told(self, state: State, size: tuple[int, int], arranged: tuple[object, ...]) -> tuple[int, int] | None:
        """Return *size*, columns and rows of the panel, if the script's terminal must get it; else ``None``.

        *arranged* is what the user has chosen: the size of the user's own terminal, and which panels are shown.
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
    # After a run, findings may make the panel lower. The next run begins without them, so that is no reason to resize.
    return columns == terminal.columns and (rows >= terminal.rows or run is None or not run.going)
