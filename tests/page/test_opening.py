"""A page opens from a disk, under strict policies and without a network, and draws all that a recording has."""

import functools
import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from tests import streams as s
from tests.page.browsers import Tab
from tests.page.conftest import RECORDINGS, Make
from tfmemtop import events
from tfmemtop.cli.main import main
from tfmemtop.events.allocations import WindowAllocations, pack, unpack
from tfmemtop.events.recording import read

ATTACK = (
    "</script><script>attacked=1</script><img src=x onerror=attacked=2><svg onload=attacked=3>"
    "\"'`--><!--]]>&lt;b&gt;\\u003c${attacked=4}\u202egnp.exe\u2066\u2028"
)
HOSTILE_FILE = "<img src=x onerror=attacked=5>'\"&lt;" + "long" * 20
"""The name of a recording's file, which may have no slash."""

LONG = 700
"""So many characters have some of the texts more."""

TEXTS = frozenset(
    {
        *("host", "user", "command", "argv", "cwd", "environment", "executable", "tensorflow_path", "version"),
        *("name", "function", "operation", "file", "code", "message", "text", "error", "detail", "variables"),
        *("lines", "largest", "others", "functions", "names"),
    }
)
"""The fields of events and of their parts whose texts are any, with all that is in them."""

FIXED = frozenset({"GPU:0", "CPU:0", "HOST:0", "variables", "optimizer", "float32", ""})
"""Texts that have a meaning in such a field."""


def hostile(path: Path) -> Iterator[events.Event]:
    """Yield the events of recording *path*, with :data:`ATTACK` behind each text that may be any."""
    for event in read(path).events():
        if isinstance(event, events.Holders) and event.packed:
            content = unpack(event.packed, WindowAllocations)
            event = replace(event, packed=pack(replace(content, names=[attacked(name) for name in content.names])))
        made = msgspec.to_builtins(event)
        yield msgspec.convert({key: _hostile(value, key in TEXTS) for key, value in made.items()}, type(event))


def attacked(text: str) -> str:
    """Return *text* with the attack behind it, and longer than any screen if it is short."""
    return f"{text}{ATTACK}{'long' * (LONG // 4) if len(text) % 4 == 0 else ''}"


def _hostile(value: Any, free: bool) -> Any:
    match value:
        case dict():
            return {key: _hostile(inner, free or key in TEXTS) for key, inner in value.items()}
        case list():
            return [_hostile(inner, free) for inner in value]
        case str() if free and value not in FIXED:
            return attacked(value)
    return value


RESNET, RANKS = ("h100-resnet.jsonl",), ("ranks/h200-0.jsonl.gz", "ranks/h200-1.jsonl.gz")
LEAK, RUNS = ("windows/leak.jsonl",), ("h200-runs.jsonl",)

COLOURS = """(selector) => [...document.querySelectorAll(selector)].map((canvas) => {
    const { width, height } = canvas;
    const pixels = width && height ? canvas.getContext("2d").getImageData(0, 0, width, height).data : [];
    return new Set(new Uint32Array(pixels.buffer ?? [])).size;
})"""
"""How many colours each canvas has that the selector finds: one if nothing is drawn there."""


def colours(tab: Tab, view: str) -> int:
    """Return how many colours the canvas of *view* has that has most."""
    counts: list[int] = tab.ask(f"({COLOURS})('#{view} canvas')")
    return max(counts)


def opened(tab: Tab, page: Path | str, width: int = 1600) -> Tab:
    """Open *page*, and wait until all is drawn."""
    tab.open(page, width)
    tab.until("document.documentElement.dataset.drawn")
    return tab


def alone(tab: Tab, page: Path | str) -> bool:
    """Whether the page has had no error, and has asked for nothing but itself."""
    asked = {address for address in tab.requests if not address.startswith("data:")}
    return tab.errors == [] and asked <= {page.as_uri() if isinstance(page, Path) else page}


def test_every_view_is_drawn(tab: Tab, page: Make) -> None:
    file = page(*RESNET)
    tab.do("offline")
    opened(tab, file)
    sections = tab.ask("[...document.querySelectorAll('section')].map((each) => [each.id, each.innerText.length])")
    assert [name for name, _ in sections] == ["verdict", "time", "holders", "lifetimes", "map", "account"]
    assert all(length > 200 for name, length in sections if name != "lifetimes")
    assert colours(tab, "time") > 8 and colours(tab, "lifetimes") > 8 and colours(tab, "map") > 4
    assert tab.ask("document.querySelectorAll('#holders .flame .cell').length") > 50
    assert tab.ask("document.querySelector('#account .stack').children.length") > 4
    assert alone(tab, file)


def test_the_ranks_of_a_job_are_beside_each_other(tab: Tab, page: Make) -> None:
    file = page(*RANKS)
    opened(tab, file)
    text = tab.ask("document.querySelector('#comparison').innerText")
    assert "2 ranks" in text and "rank 0" in text and "rank 1" in text
    assert alone(tab, file)


def test_recordings_with_little_in_them(tab: Tab, page: Make) -> None:
    for name in ("cpu-plain.jsonl", "windows/no-events.jsonl", "seeds/growth-no-device.jsonl"):
        file = page(name)
        opened(tab, file)
        said = tab.ask("document.querySelector('#holders').innerText")
        assert "No window of allocations was recorded" in said and "A window is a time, usually one step" in said
    assert tab.errors == []


@contextmanager
def served(folder: Path, policy: str) -> Iterator[tuple[str, list[str]]]:
    """Serve *folder* with this policy. Yield the address, and a list that gets what is asked for."""
    asked: list[str] = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def end_headers(self) -> None:
            if policy:
                self.send_header("Content-Security-Policy", policy)
            super().end_headers()

        def log_message(self, *_: object) -> None:
            asked.append(self.path)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder)))
    with server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()
        thread.join()


def test_where_scripts_and_styles_are_forbidden_it_says_what_matters(tab: Tab, page: Make) -> None:
    file = page(*LEAK)
    with served(file.parent, "default-src 'none'; sandbox") as (address, asked):
        tab.open(f"{address}/page.html")
        said = tab.ask("document.querySelector('main').innerText")
    assert "history keeps 321 tensors" in said and "What helps" in said
    assert asked == ["/page.html"]


def test_by_its_own_policy_everything_works_from_a_server(tab: Tab, page: Make) -> None:
    file = page(*LEAK)
    with served(file.parent, "") as (address, asked):
        opened(tab, f"{address}/page.html")
        assert colours(tab, "time") > 4
        assert alone(tab, f"{address}/page.html")
    assert asked == ["/page.html"]


def test_its_own_policy_forbids_all_that_it_does_not_need(tab: Tab, page: Make) -> None:
    opened(tab, page(*LEAK))
    refused = tab.ask(
        """(async () => {
            const refused = [];
            addEventListener("securitypolicyviolation", (event) => refused.push(event.effectiveDirective));
            document.body.insertAdjacentHTML("beforeend", '<img src="http://127.0.0.1:9/x"><p onclick="x=1" id="no">');
            const script = Object.assign(document.createElement("script"), { textContent: "window.injected = 1" });
            document.body.append(script);
            await fetch("http://127.0.0.1:9/x").catch(() => null);
            document.getElementById("no").click();
            await new Promise((done) => setTimeout(done, 50));
            return [refused.sort(), window.injected ?? null];
        })()"""
    )
    assert refused[1] is None
    assert {"connect-src", "img-src", "script-src-attr", "script-src-elem"} <= set(refused[0])


def attack(folder: Path, name: str) -> Path:
    """Return the page of a recording whose names and texts try to break out of it."""
    recording = s.written(folder / f"{HOSTILE_FILE}.jsonl", hostile(RECORDINGS / name))
    file = folder / "page.html"
    assert main(["report", str(recording), "-o", str(file)]) == 0
    return file


@pytest.fixture(params=["windows/leak.jsonl", "h200-two-cards.jsonl"])
def attacking(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return attack(tmp_path, request.param)


def test_a_recordings_texts_are_texts(tab: Tab, attacking: Path) -> None:
    opened(tab, attacking, 390)
    tab.ask("document.querySelectorAll('details').forEach((each) => (each.open = true))")
    tab.ask("document.querySelectorAll('.flame .cell, #holders tbody button').forEach((each) => each.focus())")
    for key in ("ArrowLeft", "e", "p", "l", "?"):
        tab.do("press", key)
    assert tab.ask("document.body.textContent.includes('</script><script>attacked=1')")
    assert tab.ask("document.title").startswith(HOSTILE_FILE[:20])
    assert tab.ask("window.attacked ?? null") is None
    assert tab.ask("document.querySelectorAll('img, [onerror], [onload], main script').length") == 0
    assert alone(tab, attacking)
    wide, visible = tab.ask("[document.documentElement.scrollWidth, innerWidth]")
    assert wide <= visible


def test_attacks_are_texts_in_its_plain_part_too(tab: Tab, attacking: Path) -> None:
    with served(attacking.parent, "script-src 'none'") as (address, asked):
        tab.open(f"{address}/page.html")
        assert tab.ask("document.body.textContent.includes('</script><script>attacked=1')")
        assert tab.ask("document.querySelectorAll('img, [onerror], [onload]').length") == 0
    assert asked == ["/page.html"]
