"""Start TensorFlow programs without the parts that cost processor time and that most tests do not need.

``import tensorflow`` and the exit of Python after it take 4.5 s. This saves 1.8 s of them: Keras, which TensorFlow
imports without a request, and full garbage collections.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path

FOLDER = Path(__file__).parent
"""The folder to put into ``PYTHONPATH``, so that Python runs its ``sitecustomize``."""

_IMPORTS = re.compile(r"^\s*(import .*\btensorflow\b|from tensorflow\b)", re.MULTILINE)


def variables(source: str) -> dict[str, str]:
    """Return the environment variables for a program with the text *source*.

    A program that imports Keras itself gets Keras as usual.
    """
    path = os.pathsep.join(filter(None, [str(FOLDER), os.environ.get("PYTHONPATH", "")]))
    return {"PYTHONPATH": path} | ({} if "keras" in source else {"TF_USE_LEGACY_KERAS": "1"})


def for_command(words: Iterable[str], folder: Path = Path()) -> dict[str, str]:
    """Return the variables for a command in *folder* that may start TensorFlow; none if no word of it imports that."""
    source = "\n".join(_source(word, folder) for word in words)
    return variables(source) if _IMPORTS.search(source) else {}


def _source(word: str, folder: Path) -> str:
    """Return the text of the script if *word* is the path of one, and otherwise *word* itself."""
    path = folder / word if word.endswith(".py") and "\n" not in word else None
    return path.read_text() if path is not None and path.exists() else word
