"""Where the recordings of tests on a GPU go: to be kept, or with the test."""

import os
from pathlib import Path


def kept(folder: Path) -> Path:
    """The folder that ``TFMEMTOP_KEEP_RECORDINGS`` names, else *folder*."""
    named = os.environ.get("TFMEMTOP_KEEP_RECORDINGS")
    return Path(named) if named else folder
