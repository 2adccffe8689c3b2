"""Start tfmemtop as its shell script does, on a machine that seems to have a card.

Its first picture shows the card. The import of Textual waits until the file named by ``$SCREEN_MAY_BEGIN`` exists.
"""

import os
import sys
import time
from collections.abc import Sequence
from ctypes import CDLL
from importlib.abc import MetaPathFinder
from pathlib import Path
from types import ModuleType

sys.path.append(str(Path(__file__).parents[2]))

from tfmemtop import boot
from tfmemtop.first import begin, cards


class Gate(MetaPathFinder):
    """A finder that delays the import of Textual."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if name == "textual":
            while not Path(os.environ["SCREEN_MAY_BEGIN"]).exists():
                time.sleep(0.01)
            if os.environ.get("LIBRARY_CRASHES"):
                CDLL(None).abort()


def card() -> list[cards.Card]:
    if os.environ.get("DRIVER_HANGS"):
        time.sleep(3600)
    used, total = 2867 << 20, 143_771 << 20
    return [cards.Card(0, "NVIDIA H200", total, used, total - used, 45, 22, 269.0, 42, {os.getppid(): used})]


def stay_after_drawing() -> None:
    from tfmemtop.first import paint  # imported here: it takes read_cards as it is now

    draw = paint.paint

    def stay(parent: int) -> bool:
        drawn = draw(parent)
        time.sleep(3600)
        return drawn

    paint.paint = stay


begin.DRIVER = os.devnull
cards.read_cards = card
if os.environ.get("PAINTER_STAYS"):
    stay_after_drawing()
sys.meta_path.insert(0, Gate())
sys.argv[1:1] = [boot.SCREENS]
os.environ.pop("PYTHONPATH", None)
boot.main()
