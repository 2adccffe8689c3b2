"""F1 on the cluster's screens: their keys and columns, followed by the pages of the manual."""

from rich.segment import Segment

from tfmemtop.cluster import text as words
from tfmemtop.ui.cluster_keys import KEYS
from tfmemtop.ui.draw.lines import Line
from tfmemtop.ui.draw.palette import BOLD, KEY, PLAIN, Glyphs
from tfmemtop.ui.draw.text import wrap
from tfmemtop.ui.keys import UNKNOWN
from tfmemtop.ui.screens.help import HelpDialog, table_rows


class ClusterHelp(HelpDialog):
    """The help of the cluster's screens. Its first page lists their keys and columns."""

    def __init__(self, *, glyphs: Glyphs) -> None:
        super().__init__(KEYS, glyphs=glyphs)

    def _keys_and_words(self, width: int) -> list[Line]:
        lines: list[Line] = []
        for group, title in words.HELP_GROUPS.items():
            lines.append([Segment(title, BOLD)])
            lines += table_rows([(key.shown, key.help) for key in KEYS if key.group == group], width, KEY)
        lines += [[], [Segment("Columns", BOLD)], *table_rows(words.COLUMNS, width, PLAIN)]
        return [*lines, *([Segment(f"  {line}")] for line in wrap(UNKNOWN, width - 2))]
