"""Real browsers, without a window: a tab opens a page, is clicked and keyed, and is asked what it shows.

Node and puppeteer-core drive Chromium and Firefox in the same way.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from tests.patience import PATIENCE_S

HERE = Path(__file__).parent
MODULES = Path(os.environ.get("TFMEMTOP_NODE_MODULES") or HERE.parents[1] / "tfmemtop/page/node_modules")
"""Where ``npm install`` put what ``tfmemtop/page/package.json`` names."""

PROGRAMS = {
    "chrome": shutil.which("chromium") or shutil.which("google-chrome"),
    "firefox": shutil.which("firefox-esr") or shutil.which("firefox"),
}
OPTIONS = {
    "chrome": (
        *("--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
        *("--disable-component-update", "--disable-sync", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
        *(("--no-sandbox",) if os.geteuid() == 0 else ()),
    ),
    "firefox": (),
}


def lacking(name: str) -> str:
    """Return why browser *name* cannot be used here, or an empty text."""
    if PROGRAMS[name] is None:
        return f"no {name} is installed (Debian: apt-get install chromium firefox-esr)"
    if shutil.which("node") is None:
        return "Node is not installed (Debian: apt-get install nodejs npm)"
    if not (MODULES / "puppeteer-core").is_dir():
        return f"puppeteer-core is not installed (npm install, in {HERE.parents[1] / 'tfmemtop/page'})"
    return ""


class PageError(Exception):
    """The browser could not do what it was told."""


class Browser:
    """A browser that runs. Its name is ``chrome`` or ``firefox``."""

    def __init__(self, name: str, process: "subprocess.Popen[str]") -> None:
        self.name = name
        self._process = process
        self._numbers = count()
        self._answer()

    @contextmanager
    def tab(self) -> Iterator["Tab"]:
        """Open a new tab, and close it at the end."""
        tab = Tab(self, next(self._numbers))
        yield tab
        tab.do("close")

    def tell(self, tab: int, call: str, *arguments: object) -> Any:
        """Have *tab* do *call*, as ``browser.mjs`` has it. Return the answer. :class:`PageError` if it fails."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"tab": tab, "call": call, "args": arguments}) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise PageError(f"{self.name} has ended")
        said = json.loads(line)
        if "failure" in said:
            raise PageError(said["failure"])
        return said["answer"]


class Tab:
    """A tab of a browser."""

    def __init__(self, browser: Browser, number: int) -> None:
        self.browser, self._number = browser, number

    def do(self, call: str, *arguments: object) -> Any:
        """Do *call*, as ``browser.mjs`` has it."""
        return self.browser.tell(self._number, call, *arguments)

    def open(self, page: Path | str, width: int = 1600, height: int = 1000) -> "Tab":
        """Open a file, or an address, in a window of *width* times *height* pixels."""
        self.do("resize", width, height)
        self.do("goto", page.as_uri() if isinstance(page, Path) else page)
        return self

    def ask(self, code: str) -> Any:
        """Return what this JavaScript gives in the page."""
        return self.do("ask", code)

    def until(self, code: str) -> None:
        """Wait until this JavaScript gives something true."""
        self.do("until", code, PATIENCE_S * 1000)

    @property
    def errors(self) -> list[str]:
        """What the page wrote to its console as a warning or an error, and each error that nothing caught."""
        heard: list[str] = self.do("heard")["errors"]
        return heard

    @property
    def requests(self) -> list[str]:
        """The addresses that the page asked for, the page itself among them."""
        heard: list[str] = self.do("heard")["requests"]
        return heard


@contextmanager
def browser(name: str, folder: Path) -> Iterator[Browser]:
    """Start browser *name*, with *folder* as its user's home, and end it."""
    program = PROGRAMS[name]
    assert program is not None
    command = ["node", str(HERE / "browser.mjs"), name, program, str(MODULES), *OPTIONS[name]]
    environment = os.environ | {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "XDG_CACHE_HOME": str(folder)}
    with (
        (folder / "log").open("ab") as log,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, env=environment
        ) as process,
    ):
        try:
            yield Browser(name, process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
