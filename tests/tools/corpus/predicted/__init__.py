"""Scripts whose smallest limit is predicted and then proved: the suitable ones of :mod:`..limited`, and others.

Each prints ``done`` as its last line.
"""

from pathlib import Path

from tests.tools.corpus.limited import COMMANDS as LIMITED

_HERE = Path(__file__).parent
_TAKEN = ("demo", "conv", "dense", "function", "fragments", "logical", "eager")

SCRIPTS: dict[str, list[str]] = {
    **{name: LIMITED[name][1:] for name in _TAKEN},
    "shapes": [*LIMITED["shapes"][1:], "5"],  # the same sizes in each run
    **{path.stem: [str(path)] for path in sorted(_HERE.glob("*.py")) if path.stem != "__init__"},
}
"""The path and the arguments of each script."""
