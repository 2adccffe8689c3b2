"""TensorFlow programs without what costs processor time and has no part in most tests.

Of the 4.5 s that ``import tensorflow`` and Python's end after it take, this saves 1.8: Keras, which TensorFlow imports
unasked, and full garbage collections.
"""

import os
from pathlib import Path

FOLDER = Path(__file__).parent
"""For ``PYTHONPATH``."""


def variables(source: str) -> dict[str, str]:
    """The environment variables for a program of the text *source*. What imports Keras itself has it as ever."""
    path = os.pathsep.join(filter(None, [str(FOLDER), os.environ.get("PYTHONPATH", "")]))
    return {"PYTHONPATH": path} | ({} if "keras" in source else {"TF_USE_LEGACY_KERAS": "1"})
