"""Start TensorFlow programs without the parts that cost processor time and that most tests do not need.

``import tensorflow`` and the exit of Python after it take 4.5 s. This saves 1.8 s of them: Keras, which TensorFlow
imports without a request, and full garbage collections.
"""

import os
from pathlib import Path

FOLDER = Path(__file__).parent
"""The folder to put into ``PYTHONPATH``, so that Python runs its ``sitecustomize``."""


def variables(source: str) -> dict[str, str]:
    """Return the environment variables for a program with the text *source*.

    A program that imports Keras itself gets Keras as usual.
    """
    path = os.pathsep.join(filter(None, [str(FOLDER), os.environ.get("PYTHONPATH", "")]))
    return {"PYTHONPATH": path} | ({} if "keras" in source else {"TF_USE_LEGACY_KERAS": "1"})
