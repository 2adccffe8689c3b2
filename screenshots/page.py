"""Draw the picture of a page to share, for the README: ``python -m screenshots.page``. It needs Chromium and Node.

Node's packages are those of ``tfmemtop/page/package.json``: ``npm install`` there.
"""

import tempfile
from pathlib import Path

from tests.page.browsers import browser, lacking
from tests.page.conftest import RECORDINGS
from tfmemtop.cli.main import main as tfmemtop

HERE = Path(__file__).parent
RECORDING = RECORDINGS / "windows" / "leak.jsonl"
SIZE = (1180, 960)
"""Width and height of the window, in pixels."""

DRAWN = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 0))))"


def main() -> None:
    if why := lacking("chrome"):
        raise SystemExit(why)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "page.html")
        tfmemtop(["report", str(RECORDING), "-o", str(page)])
        with browser("chrome", Path(folder)) as chromium, chromium.tab() as tab:
            tab.do("media", "screen", "light")
            tab.open(page, *SIZE)
            tab.until("document.documentElement.dataset.drawn")
            tab.ask("document.querySelector('.answers').open = false")
            tab.ask(DRAWN)
            tab.do("picture", str(HERE / "page.png"), False)
    print("page.png")


if __name__ == "__main__":
    main()
