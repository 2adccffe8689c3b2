"""The figures that a page shows are those that tfmemtop prints of the same recording."""

import json
import re
from typing import Any

import pytest

from tests.commands import printed_by
from tests.page.browsers import Tab
from tests.page.conftest import RECORDINGS, Make
from tests.page.test_opening import opened

TABLE = """(() => {
    const table = document.querySelector("#holders table");
    const more = [...table.querySelectorAll("tfoot button")].find((each) => each.textContent.includes("show all"));
    more?.click();
    const bytes = (row) => Number(row.querySelector("[data-bytes]").dataset.bytes);
    const row = (each) => ({
        name: each.cells[0].textContent, kind: each.cells[1].textContent,
        bytes: bytes(each), count: Number(each.cells[4].textContent),
    });
    const now = document.querySelector("#holders table");
    const foot = [...now.querySelectorAll("tfoot tr")].map((each) => [each.cells[0].textContent, bytes(each)]);
    return { rows: [...now.querySelectorAll("tbody tr")].map(row), foot: Object.fromEntries(foot) };
})()"""
"""All rows of the table of holders."""

CLICK = """(view, text) => {
    [...document.querySelectorAll(`#${view} button`)].find((each) => each.textContent === text).click();
}"""


def told(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    """Return what a command prints as JSON."""
    return json.loads(printed_by(capsys, *words, "--json"))


def by_name(rows: list[dict[str, Any]], by: str) -> dict[tuple[str, str], tuple[int, int]]:
    """Return the bytes and the count of each name and kind.

    Several operations may have one short name. The page has one row of them, so their kinds are left out.
    """
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for row in rows:
        key = row["name"], "" if by == "op" else row["kind"]
        size, count = found.get(key, (0, 0))
        found[key] = size + row["bytes"], count + row["count"]
    return found


@pytest.mark.parametrize("name", ["h100-resnet.jsonl", "windows/leak.jsonl"])
def test_who_holds_the_peak(tab: Tab, page: Make, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    opened(tab, page(name))
    for by in ("layer", "op", "kind", "shape", "line"):
        tab.ask(f"({CLICK})('holders', '{'operation' if by == 'op' else by}')")
        shown = tab.ask(TABLE)
        right = told(capsys, "holders", str(RECORDINGS / name), "--by", by)
        assert by_name(shown["rows"], by) == by_name(right["rows"], by)
        assert shown["foot"]["in use"] == right["peak"]
        assert shown["foot"].get("unknown", 0) == right["unknown"]


def test_who_holds_it_at_another_moment(tab: Tab, page: Make, capsys: pytest.CaptureFixture[str]) -> None:
    opened(tab, page("h100-resnet.jsonl"))
    tab.ask("document.querySelector('.lifetimes').focus()")
    for _ in range(10):
        tab.do("press", "PageDown")
    command = tab.ask("document.querySelector('#holders .now').title")
    at = command.split("--at ")[1]
    right = told(capsys, "holders", str(RECORDINGS / "h100-resnet.jsonl"), "--at", at)
    shown = tab.ask(TABLE)
    assert by_name(shown["rows"], "layer") == by_name(right["rows"], "layer")
    assert shown["foot"]["in use"] == right["in_use"] < 6189253888


@pytest.mark.parametrize("name", ["cpu-oom.jsonl", "windows/leak.jsonl", "h200-runs.jsonl", "h100-transformer.jsonl"])
def test_the_verdict(tab: Tab, page: Make, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    opened(tab, page(name))
    right = told(capsys, "why", str(RECORDINGS / name))
    verdict = tab.ask("document.querySelector('#verdict .verdict').lastChild.textContent")
    assert verdict and right["verdict"]["text"].replace("`", "").startswith(verdict)
    remedies = tab.ask("[...document.querySelectorAll('.remedies li')].map((each) => each.textContent)")
    assert "; ".join(remedies) == (right["verdict"]["remedy"] or "").replace("`", "")
    said = tab.ask("document.querySelector('#account').innerText")
    assert all(finding["text"].replace("`", "") in said for finding in right["findings"])
    code = tab.ask("[...document.querySelectorAll('#verdict .verdict code')].map((each) => each.textContent)")
    assert code == re.findall("`(.+?)`", right["verdict"]["text"])


def test_the_parts_of_an_account_add_up(tab: Tab, page: Make) -> None:
    for name in ("h100-resnet.jsonl", "h200-two-cards.jsonl", "cpu-demo.jsonl"):
        opened(tab, page(name))
        accounts = tab.ask(
            """[...document.querySelectorAll("#account .account")].map((each) => {
                const sizes = [...each.querySelectorAll("[data-bytes]")].map((cell) => Number(cell.dataset.bytes));
                return [sizes.pop(), sizes];
            })"""
        )
        assert accounts and all(total == sum(parts) for total, parts in accounts)
