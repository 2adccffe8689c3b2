"""Where the recordings of the tests and the parts of a page are."""

from pathlib import Path

RECORDINGS = Path(__file__).parents[1] / "recordings"
PAGE = Path(__file__).parents[2] / "tfmemtop" / "page"
BUILT = (PAGE / "built/page.js", PAGE / "built/page.css")
