"""``tfmemtop report``: the figures are those of ``why`` and ``holders``; the file is safe, private and bounded."""

import base64
import gzip
import hashlib
import json
import re
import stat
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace

from tests import streams as s
from tests import windows as w
from tests.anything import Filling
from tests.commands import printed_by
from tfmemtop import events
from tfmemtop.cli.main import main
from tfmemtop.events import recording
from tfmemtop.findings.holders import holder
from tfmemtop.frameworks import FrameworkName
from tfmemtop.reports.shared.data import PageOwner, PagePool
from tfmemtop.reports.shared.windows import bounded, page_window, with_windows
from tfmemtop.state import State, apply
from tfmemtop.state.attribution import Kind
from tfmemtop.state.holders import By
from tfmemtop.state.windows import chosen

RECORDINGS = Path(__file__).parent.parent / "recordings"
REAL = (
    "h100-resnet-xla",
    "h200-two-cards",
    "cpu-oom",
    "leaks/leak-beside-model",
    "windows/batch-too-large",
    "windows/no-events",
)
WITH_HOLDERS = (
    "h100-resnet-xla",
    "callers/h100-shapes",
    "leaks/h200-tape",
    "windows/xla",
)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def page_of(*names: str) -> str:
    assert main(["report", *names, "-o", "page.html"]) == 0
    return Path("page.html").read_text()


def data_of(page: str) -> dict[str, Any]:
    """Return what the page's script reads."""
    packed = re.search(r'<script type="application/octet-stream" id="data">([A-Za-z0-9+/=]*)</script>', page)
    assert packed
    found: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(packed[1])))
    return found


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(printed_by(capsys, *words, "--json"))
    return found


@pytest.mark.parametrize("name", REAL)
def test_verdict_and_findings_are_those_of_why(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(RECORDINGS / f"{name}.jsonl")
    shown, told = data_of(page_of(path))["sessions"][0]["runs"][-1], printed(capsys, "why", path)
    verdict = shown["verdict"]
    assert shown["number"] == told["run"]
    assert verdict["text"] == told["verdict"]["text"]
    assert "; ".join(verdict["remedies"]) == (told["verdict"]["remedy"] or "")
    assert [one["text"] for one in shown["findings"]] == [one["text"] for one in told["findings"]]
    assert [one["peaks"] for one in shown["phases"]] == [one["peaks"] for one in told["phases"]]


def in_use(pool: dict[str, Any], by: str) -> tuple[Counter[str], int]:
    """Return bytes by the name of a row at the peak of *pool*, and the bytes of the row of what is unknown."""
    window = pool["windows"][pool["shown"]]
    at = window["peakAt"]
    rows: Counter[str] = Counter()
    unknown = window["unknown"] + window["leftOut"]
    for owner, size, begin, end in zip(window["owner"], window["bytes"], window["from"], window["to"], strict=True):
        if begin <= at and (end > at or end == -1):
            one = pool["owners"][owner]
            kind = Kind(one["kind"])
            if kind is Kind.UNKNOWN:
                unknown += size
            else:
                rows[(one[by] if by != "kind" else "") or holder("", kind, By(by))] += size
    return rows, unknown


@pytest.mark.parametrize("name", WITH_HOLDERS)
def test_buffers_add_up_to_the_rows_of_holders(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(RECORDINGS / f"{name}.jsonl")
    pool = data_of(page_of(path))["sessions"][0]["runs"][-1]["pools"][0]
    window = pool["windows"][pool["shown"]]
    for by in By:
        told = printed(capsys, "holders", path, "--by", by.value)
        rows, unknown = in_use(pool, by.value)
        expected: Counter[str] = Counter()
        for row in told["rows"]:
            expected[row["name"]] += row["bytes"]
        assert rows == expected and unknown == told["unknown"], by
        assert rows.total() + unknown == told["peak"] == window["peak"] and pool["device"] == told["device"]
        reached_us = (told["at"] - window["began"]) * 1e6
        assert sum(window["times_us"][: window["peakAt"] + 1]) == pytest.approx(reached_us, abs=1)


@pytest.mark.parametrize("name", ["h200-runs", "cpu-oom", "leaks/h200-tape"])
def test_layers_lose_no_peak_and_add_up_to_all_that_is_used(name: str) -> None:
    path = RECORDINGS / f"{name}.jsonl"
    session = data_of(page_of(str(path)))["sessions"][0]
    stream = list(recording.read(path).events())
    for place in session["places"]:
        layers = {layer["key"]: layer["bytes"] for layer in place["layers"]}
        assert place["times"] == sorted(set(place["times"])) and len(place["times"]) <= 2600
        assert {len(column) for column in layers.values()} == {len(place["times"])}
        assert all(size is None or size >= 0 for column in layers.values() for size in column)
        kind = "CPU" if place["key"] == "cpu" else "GPU"
        readings = [one for one in stream if isinstance(one, events.Allocator) and one.device == f"{kind}:0"]
        highest = max((max(one.in_use or 0, one.high or 0) for one in readings), default=0)
        assert max(size or 0 for size in layers["in_use"]) == highest
        used = [
            one.used or 0 for one in stream if isinstance(one, events.DeviceReading) and str(one.index) == place["key"]
        ]
        sums = [sum(size or 0 for size in column) for column in zip(*layers.values(), strict=True)]
        assert max(sums) >= max([*used, highest])


def test_all_that_is_used_stays_while_our_pool_grows_between_two_readings_of_the_card(tmp_path: Path) -> None:
    gib = 1 << 30

    def jax(t: float, held: int) -> events.Framework:
        return s.framework(t, 100, FrameworkName.JAX, 0, held, peak=0, uuid=None)

    stream = [
        *(s.session(), s.run(), s.device(), s.process(0.3, 100), s.hook(1.1, 100), s.effective(1.2, 100)),
        *(s.allocator(1.8, 100, in_use=gib, pool=gib), jax(1.9, gib)),
        replace(s.device_reading(2.0, {100: 3 * gib}), used=8 * gib),
        *(s.allocator(2.1, 100, in_use=gib, pool=gib), jax(2.2, gib)),
        *(s.allocator(2.6, 100, in_use=4 * gib, pool=5 * gib), jax(2.7, 2 * gib)),
    ]
    (place,) = data_of(page_of(str(s.written(tmp_path / "grown.jsonl", stream))))["sessions"][0]["places"]
    layers = {layer["key"]: layer["bytes"] for layer in place["layers"]}
    assert list(layers) == ["in_use", "cached", "jax", "outside", "others"]
    newest = {key: column[-1] for key, column in layers.items()}
    assert sum(newest.values()) == 8 * gib
    assert (newest["in_use"], newest["cached"], newest["jax"]) == (4 * gib, gib, 2 * gib)


def test_an_account_adds_up_also_of_a_run_that_another_one_followed() -> None:
    runs = data_of(page_of(str(RECORDINGS / "h200-runs.jsonl")))["sessions"][0]["runs"]
    assert len(runs) > 2
    for run in runs:
        (account,) = run["accounts"]
        assert "GPU 0" in account["heading"] and account["total"] == sum(part["bytes"] for part in account["parts"])


def test_a_setting_that_came_too_late_is_shown_beside_what_is_in_effect() -> None:
    (session,) = data_of(page_of(str(RECORDINGS / "seeds" / "growth-too-late.jsonl")))["sessions"]
    (_, requested, effective, where), *_, device = session["runs"][0]["settingRows"]
    assert requested == "set_memory_growth(GPU:0, True)" and where == "growth_too_late.py:11"
    assert effective.startswith("raised RuntimeError") and device[2] == "growth off, bfc"


def test_a_file_and_the_number_of_a_run_show_the_runs_up_to_it() -> None:
    session = data_of(page_of(f"{RECORDINGS / 'h200-runs.jsonl'}:2"))["sessions"][0]
    assert [run["number"] for run in session["runs"]] == [1, 2]
    assert session["runs"][-1]["ended"] <= session["ended"] < 60


def test_ranks_are_beside_each_other_in_their_order_with_what_compare_says(capsys: pytest.CaptureFixture[str]) -> None:
    paths = [str(RECORDINGS / "ranks" / f"loop-{rank}.jsonl.gz") for rank in (2, 0, 3, 1)]
    data = data_of(page_of(*paths))
    assert [session["placement"].partition(" of")[0] for session in data["sessions"]] == [f"rank {n}" for n in range(4)]
    comparison = data["comparison"]
    assert comparison["text"] == printed(capsys, "compare", *paths)["sentences"]
    different = [row["different"] for row in comparison["rows"]]
    assert different == sorted(different, reverse=True) and all(len(row["values"]) == 4 for row in comparison["rows"])


def test_two_runs_are_compared_by_the_allocations_that_differ(capsys: pytest.CaptureFixture[str]) -> None:
    paths = [str(path) for path in sorted((RECORDINGS / "compared").iterdir())]
    comparison = data_of(page_of(*paths))["comparison"]
    told = printed(capsys, "compare", *paths)
    assert comparison["text"] == told["sentences"]
    largest = max(abs(one["difference"]) for one in told["holders"])
    assert abs(comparison["differences"][0]["values"][0] - comparison["differences"][0]["values"][1]) == largest


def test_of_many_buffers_the_largest_stay_and_the_others_are_counted() -> None:
    window = w.Window()
    for size in range(1, 101):
        window.allocate(size * w.ROUND, f"op{size % 7}", shape=[size])
    window.free(0, 1, 99)
    state = State()
    for event in [s.session(), s.run(), s.process(0.6, 100), s.hook(1.1, 100), window.done(unknown=500)]:
        apply(state, event)
    owners: dict[PageOwner, int] = {}
    whole = page_window(chosen(state)[0], owners)
    few = bounded(whole, 10)
    assert bounded(whole, 100) is whole and few.bytes == [size * w.ROUND for size in range(91, 101)]
    assert few.owner == whole.owner[90:]
    pool = PagePool(
        pid=100,
        device="GPU:0",
        place="0",
        owners=list(owners),
        windows=[few, few],
        shown=0,
        maps=[],
    )
    fewer = with_windows(pool, [replace(few, owner=few.owner[-1:])], 0)
    assert fewer.owners == [pool.owners[few.owner[-1]]] and fewer.windows[0].owner == [0]
    assert few.left_out == sum(range(1, 91)) * w.ROUND and "The 90 smallest buffers," in few.about
    assert sum(few.bytes) + few.left_out + few.unknown == few.peak


HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'&\u202e\u2028\x1b[31m`${x}" + "y" * 300
"""A text that would run a script, end the data, change the direction of writing, or widen the page."""


class Tags(HTMLParser):
    """Collects the tags of a page, with their attributes, and the text of its scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {"script": [], "style": []}
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.cdata_elem:
            self.texts[self.cdata_elem].append(data)


PLAIN = (
    "html head meta link title style body main h1 h2 p code ul li pre dl dt dd figure script svg g rect path text tspan"
)
"""The tags of a page that is not drawn by its script yet."""


def test_hostile_texts_in_every_field_are_texts_on_the_page(tmp_path: Path) -> None:
    named = {"run": 1, "pid": 100, "index": 0, "device": "GPU:0", "format": events.FORMAT}
    stream = [*Filling(HOSTILE, 1, named=named).events(), w.step().done()]
    page = page_of(str(s.written(tmp_path / "hostile.jsonl", stream)))
    found = Tags(page)
    assert {tag for tag, _ in found.tags} <= set(PLAIN.split())
    assert not [name for _, attributes in found.tags for name in attributes if name.startswith("on") or name == "style"]
    linked = [
        attributes[name] for _, attributes in found.tags for name in attributes if name in ("href", "src", "action")
    ]
    assert linked == ["data:,"]
    assert page.count("<script") == 2 and page.count("</script") == 2 and "alert(1)" in page
    assert not set(page) & set("\u202e\u2028\x1b") and not set(json.dumps(data_of(page), ensure_ascii=False)) & set(
        "\u202e\x1b"
    )


def test_the_page_allows_its_own_script_and_style_and_nothing_else() -> None:
    found = Tags(page_of(str(RECORDINGS / "cpu-oom.jsonl")))
    (policy,) = [a["content"] for tag, a in found.tags if tag == "meta" and "http-equiv" in a]
    script, style = found.texts["script"][-1], "".join(found.texts["style"])
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script)]
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digests[0]}'; script-src 'sha256-{digests[1]}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def test_without_scripts_the_page_says_what_happened_and_what_helps(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(RECORDINGS / "leaks" / "h200-tape.jsonl")
    page, told = page_of(path), printed(capsys, "why", path)
    page = re.sub(r"</?code>", "`", re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.S))
    shown = " ".join(re.sub(r"<[^>]*>", " ", page).split())
    shown = shown.replace("&#x27;", "'").replace("&quot;", '"').replace("&gt;", ">").replace("&lt;", "<")
    assert told["verdict"]["text"] in shown
    assert all(remedy in shown for remedy in told["verdict"]["remedy"].split("; "))


def test_a_new_page_is_its_owners_and_never_takes_the_place_of_another_file(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(RECORDINGS / "cpu-oom.jsonl")
    assert main(["report", f"{path}:1"]) == main(["report", path]) == 0
    assert sorted(each.name for each in here.iterdir()) == ["cpu-oom-2.html", "cpu-oom.html"]
    assert all(stat.S_IMODE(each.stat().st_mode) == 0o600 for each in here.iterdir())
    assert "cpu-oom-2.html" in capsys.readouterr().out


def test_a_picture_shows_memory_over_time_and_the_largest_holders(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(RECORDINGS / "h100-resnet.jsonl")
    assert main(["report", path, "-o", "run.svg"]) == 0
    texts = [each.text for each in ElementTree.parse("run.svg").getroot().iter() if each.tag.endswith("text")]
    rows = printed(capsys, "holders", path)["rows"]
    assert {"in use", "cached", rows[0]["name"], rows[1]["name"]} <= set(texts)


def test_a_damaged_recording_has_a_page_that_says_so(tmp_path: Path) -> None:
    lines = (RECORDINGS / "cpu-oom.jsonl").read_bytes().splitlines(keepends=True)
    lines[5:5] = [b'{"type":"allocator","t":"x"}\n', b'{"type":"of_the_future","t":1}\n']
    (tmp_path / "cut.jsonl").write_bytes(b"".join(lines[: len(lines) // 2]))
    data = data_of(page_of("cut.jsonl"))
    assert data["sessions"][0]["notes"][0] == "cut.jsonl: 1 damaged line and 1 unknown line left out."
    assert data["sessions"][0]["runs"][0]["verdict"]["text"]


def test_a_session_without_a_run_has_a_page(tmp_path: Path) -> None:
    path = s.written(
        tmp_path / "watched.jsonl", [s.session(), s.device(), s.device(1), s.device_reading(1.0, {7: 1 << 30})]
    )
    page = page_of(str(path))
    assert "No program was started in this session." in page
    assert [place["name"] for place in data_of(page)["sessions"][0]["places"]] == ["GPU 0", "GPU 1"]


def test_what_was_not_recorded_is_named() -> None:
    session = data_of(page_of(str(RECORDINGS / "windows" / "no-events.jsonl")))["sessions"][0]
    assert "No window of allocations was recorded in this run" in session["notes"][0]
