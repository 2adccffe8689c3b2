"""Fixtures: pages of recordings, made by the real command, and the browsers that open them. Where both are."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.once import once
from tests.page.browsers import Browser, Tab, browser, lacking
from tfmemtop.cli.main import main

Start = Callable[[str], Browser]


@pytest.fixture(scope="session")
def browsers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """Start a browser by its name, once; skip the test where that cannot be done."""
    with ExitStack() as stack:
        started: dict[str, Browser] = {}

        def start(name: str) -> Browser:
            if why := lacking(name):
                pytest.skip(why)
            if name not in started:
                started[name] = stack.enter_context(browser(name, tmp_path_factory.mktemp(name)))
            return started[name]

        yield start


@pytest.fixture
def tab(browsers: Start) -> Iterator[Tab]:
    """A new tab of Chromium."""
    with browsers("chrome").tab() as tab:
        yield tab


Make = Callable[..., Path]


@pytest.fixture(scope="session")
def page(shared: Path) -> Make:
    """Return the page that ``tfmemtop report`` makes of the tests' recordings of these names."""

    def made(*names: str) -> Path:
        def make(folder: Path) -> None:
            files = [str(RECORDINGS / name) for name in names]
            assert main(["report", *files, "-o", str(folder / "page.html")]) == 0

        return once(shared, "page-" + "-".join(name.replace("/", "-") for name in names), make) / "page.html"

    return made


RECORDINGS = Path(__file__).parents[1] / "recordings"
PAGE = Path(__file__).parents[2] / "tfmemtop" / "page"
BUILT = (PAGE / "built/page.js", PAGE / "built/page.css")
