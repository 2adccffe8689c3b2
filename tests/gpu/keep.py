"""The folder for the recordings of tests on a GPU: one where they are kept, or that of the test."""

import os
from pathlib import Path


def kept(folder: Path) -> Path:
    """Return the folder that ``TFMEMTOP_KEEP_RECORDINGS`` names, and *folder* if it names none."""
    named = os.environ.get("TFMEMTOP_KEEP_RECORDINGS")
    return Path(named) if named else folder
