"""F1: the keys, the vocabulary and the legend."""

from collections.abc import Sequence

from rich.segment import Segment

from tfmemtop.ui.dialog import Dialog
from tfmemtop.ui.keys import Key
from tfmemtop.ui.lines import Line
from tfmemtop.ui.palette import BOLD, DIM, KEY, LAYER, UNICODE, Glyphs

_GROUPS = (
    ("run", "The script"),
    ("screen", "The screen"),
    ("replay", "The replay"),
    ("processes", "Processes"),
    ("map", "Inside the pool"),
    ("help", "More"),
)
_TABLE_KEYS = (
    ("↑ ↓", "choose a process"),
    ("Enter", "its details: memory, settings asked for and in effect, environment"),
    ("k F9", "send it a signal; asks first"),
    ("Space", "tag it; U untags all"),
    ("t F5", "as a tree"),
    (", . F6", "sort by another column; I inverts"),
)
_MAP_KEYS = (
    ("↑ ↓", "choose a region of the pool"),
    ("Enter z", "look at it alone; Esc goes back"),
    ("Tab", "another device or process; ← → too, but in a replay"),
    ("o", "the map of the moment when an allocation failed, or of now"),
)
_WORDS = (
    ("in_use", "in use", "bytes TensorFlow's allocator has handed to tensors, by chunk"),
    ("cached", "cached", "held by the allocator's pool, in use by nobody, not given back"),
    ("rest", "rest", "the process's CUDA context, library workspaces, kernels; and the cached, where unknown"),
    ("others", "others", "other processes on the card"),
    ("free", "free", "the device's own free memory"),
)


class HelpDialog(Dialog[None]):
    """Scrolls where it does not fit."""

    def __init__(self, keys: Sequence[Key], *, glyphs: Glyphs = UNICODE) -> None:
        super().__init__("tfmemtop: keys and words", glyphs=glyphs, width=92)
        self._keys = keys

    def body(self, width: int) -> list[Line]:
        lines: list[Line] = []
        for group, title in _GROUPS:
            rows = [(key.shown, key.help) for key in self._keys if key.group == group]
            rows += {"processes": _TABLE_KEYS, "map": _MAP_KEYS}.get(group, ())
            if rows:
                lines.append([Segment(title, BOLD)])
                lines += [[Segment(f"  {shown:<8}", KEY), Segment(help[: width - 10])] for shown, help in rows]
        lines += [[], [Segment("Words", BOLD)]]
        for kind, word, meaning in _WORDS:
            fill = self.glyphs.fill[kind] * 2
            lines.append(
                [Segment(f"  {fill} ", LAYER[kind]), Segment(f"{word:<8}"), Segment(meaning[: width - 13], DIM)]
            )
        lines.append([Segment("  — stands for what cannot be known; sizes are KiB-based: 1G is 1.0 GiB"[:width], DIM)])
        return lines
