"""Scripts that need memory in different ways, to be run again under the limit that is suggested after a first run.

Each prints ``done`` as its last line. Those in ``BY_CHANCE`` take turns between threads, or draw random sizes: no two
of their runs allocate the same.
"""

import sys
from pathlib import Path

from tfmemtop.demo import __file__ as demo

_HERE = Path(__file__).parent

COMMANDS: dict[str, list[str]] = {
    "demo": [sys.executable, str(Path(demo).with_name("train.py"))],
    **{path.stem: [sys.executable, str(path)] for path in sorted(_HERE.glob("*.py")) if path.stem != "__init__"},
}

BY_CHANCE = ("demo", "conv", "dense", "juggle", "phases", "shapes", "threads")
