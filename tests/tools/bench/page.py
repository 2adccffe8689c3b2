"""The page to share: its size, and the time to make it, to open it in Chromium, to zoom in it and to choose a row.

Pages of an hour and of a day are of the sessions that :mod:`tests.tools.bench.machine` makes. The browser's seconds are
of the clock, on a machine with nothing else to do.
"""

import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests import streams as s
from tests import windows as w
from tests.page.browsers import Browser, Tab, browser, lacking
from tests.page.conftest import BUILT, RECORDINGS
from tests.streams import MIB
from tests.tools.bench.machine import DAY_S
from tests.tools.bench.recording import measured, write
from tests.tools.bench.table import Row, bounded, spread

CODE_KB, HOUR_MB, DAY_MB = 250, 1.0, 3.0
MAKE_S, MAKE_MB = 10.0, 150
OPEN_S, ZOOM_MS = 1.0, 50.0

BUFFERS = 25_000

REAL = ("h100-resnet.jsonl", "h200-runs.jsonl", "leaks/weight-snapshots.jsonl")

DRAWN = "new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)))"
"""Wait until what has changed is drawn."""

ZOOM = f"""(async (view) => {{
    const over = document.querySelector(view + " .u-over");
    const box = over.getBoundingClientRect();
    const began = performance.now();
    const where = {{ clientX: box.x + box.width / 3, clientY: box.y + box.height / 2 }};
    over.dispatchEvent(new WheelEvent("wheel", {{ deltaY: -120, bubbles: true, cancelable: true, ...where }}));
    await {DRAWN};
    return performance.now() - began;
}})"""

CHOOSE = f"""(async (view) => {{
    const began = performance.now();
    document.querySelector(view + " tbody button").click();
    await {DRAWN};
    return performance.now() - began;
}})"""


def crowded(recording: Path) -> None:
    """Write a recording with a window of so many buffers, of which a tenth is in use at any moment."""
    window = w.Window()
    sizes = random.Random(1)
    for number in range(BUFFERS):
        size = MIB * round(sizes.lognormvariate(2, 1)) + w.ROUND
        window.allocate(size, f"{w.BACK}layer_{number % 50}/Mul", shape=[size], dtype="int8")
        if number >= BUFFERS // 10:
            window.free(number - BUFFERS // 10)
    s.written(recording, [s.session(), s.run(), s.process(0.6, 100), s.hook(1.1, 100), window.done()])


def make(recording: Path, page: Path) -> tuple[float, float]:
    """Make *page*. Return the seconds of CPU that it took, and the most resident memory in MB."""
    return measured("report", str(recording), "-o", str(page))


def opening(tab: Tab, page: Path) -> float:
    """Return the seconds until all of *page* is drawn."""
    began = time.perf_counter()
    tab.open(page)
    tab.until("document.documentElement.dataset.drawn")
    tab.ask(DRAWN)
    return time.perf_counter() - began


def measure(quick: bool) -> list[Row]:
    """Measure pages of real recordings, of an hour, and of a day or of two hours."""
    day_s = 7200 if quick else DAY_S
    rows = [bounded("code and styles of a page", sum(map(_size_kb, BUILT)), CODE_KB, "kB", 0, "minified")]
    with tempfile.TemporaryDirectory() as folder:
        pages = []
        for name in REAL:
            pages.append(Path(folder, f"{Path(name).stem}.html"))
            make(RECORDINGS / name, pages[-1])
        for what, seconds, most_mb in (("an hour", 3600, HOUR_MB), (f"{day_s // 3600} h", day_s, DAY_MB)):
            recording = Path(folder, f"{seconds}.jsonl.gz")
            write(recording, seconds)
            pages.append(recording.with_suffix(".html"))
            taken, resident = make(recording, pages[-1])
            recording.unlink()
            rows += [
                bounded(f"a page of {what}", _size_kb(pages[-1]) / 1e3, most_mb, "MB", 2, "with code and styles"),
                bounded(f"making a page of {what}", taken, MAKE_S, "s", 1, "CPU time from the start of Python"),
                bounded(f"memory to make a page of {what}", resident, MAKE_MB, "MB", 0, "the most resident"),
            ]
        crowded(Path(folder, "crowded.jsonl"))
        make(Path(folder, "crowded.jsonl"), Path(folder, "crowded.html"))
        if why := lacking("chrome"):
            return [*rows, Row("opening a page", f"{OPEN_S:g} s", "not measured", why)]
        return [*rows, *_in_chromium(Path(folder), pages, 3 if quick else 7)]


def _in_chromium(home: Path, pages: Sequence[Path], rounds: int) -> list[Row]:
    """Return the times of the slowest page, of which the fastest of several rounds counts: others are the machine's."""
    opened: list[float] = []
    zooms: list[float] = []
    with browser("chrome", home) as chromium:
        for page in pages:
            seconds, ms = _best(chromium, page, f"{ZOOM}('#time')", rounds)
            opened.append(seconds)
            zooms.append(ms)
        among = [
            _best(chromium, home / "crowded.html", action, rounds)[1]
            for action in (f"{ZOOM}('#lifetimes')", f"{CHOOSE}('#holders')")
        ]
    how = f"headless Chromium, the best of {rounds}; the slowest of {len(pages)} pages: {{}}"
    return [
        bounded("opening a page until all is drawn", max(opened), OPEN_S, "s", 2, how.format(spread(opened, 2))),
        bounded("a zoom by the wheel", max(zooms), ZOOM_MS, "ms", 0, how.format(spread(zooms, 0))),
        bounded(f"a zoom among {BUFFERS:,} buffers", among[0], ZOOM_MS, "ms", 0, f"the best of {rounds}"),
        bounded(f"choosing a row among {BUFFERS:,} buffers", among[1], ZOOM_MS, "ms", 0, f"the best of {rounds}"),
    ]


def _best(chromium: Browser, page: Path, action: str, rounds: int) -> tuple[float, float]:
    """Return the fewest seconds until *page* is drawn, and the fewest ms that *action* takes, by its JavaScript."""
    opened: list[float] = []
    taken: list[float] = []
    for _ in range(rounds):
        with chromium.tab() as tab:
            opened.append(opening(tab, page))
            taken += [tab.ask(action) for _ in range(3)]
    return min(opened), min(taken)


def _size_kb(path: Path) -> float:
    return path.stat().st_size / 1e3
