"""A page can be read on a wide screen and on a phone, light and dark, and on paper."""

from pathlib import Path

import pytest

from tests.page.browsers import Tab
from tests.page.conftest import Make
from tests.page.test_opening import LEAK, RANKS, RESNET, RUNS, opened

FAINT = """(() => {
    const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
    const linear = (part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    const light = (colour) => {
        const [red, green, blue] = numbers(colour).map((part) => linear(part / 255));
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    };
    const ground = (element) => {
        for (let each = element; each; each = each.parentElement) {
            const { backgroundColor } = getComputedStyle(each);
            if (numbers(backgroundColor)[3] !== 0) return backgroundColor;
        }
        return "rgb(255, 255, 255)";
    };
    const found = new Set();
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
        const element = texts.currentNode.parentElement;
        if (!texts.currentNode.data.trim() || !element.checkVisibility()) continue;
        const [bright, dark] = [light(getComputedStyle(element).color), light(ground(element))].sort((a, b) => b - a);
        if (bright + 0.05 < 4.5 * (dark + 0.05)) found.add(`${element.parentElement.className}: ${element.outerHTML}`);
    }
    return [...found];
})()"""
"""The texts that stand out from their ground by less than the 4.5 that WCAG 2 asks for."""


@pytest.mark.parametrize("names", [RESNET, LEAK, RUNS, RANKS, ("h200-two-cards.jsonl",)])
def test_no_page_is_wider_than_the_window(tab: Tab, page: Make, names: tuple[str, ...]) -> None:
    opened(tab, page(*names), 390)
    for width in (390, 768, 1600):
        tab.do("resize", width, 800)
        assert tab.ask("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_stand_out(tab: Tab, page: Make, scheme: str) -> None:
    tab.do("media", "screen", scheme)
    for names in (RESNET, LEAK):
        opened(tab, page(*names))
        assert tab.ask(FAINT) == []
    ground = tab.ask("getComputedStyle(document.body).backgroundColor")
    tab.ask("document.querySelector('.bar button').click()")
    assert tab.ask("getComputedStyle(document.body).backgroundColor") != ground
    assert tab.ask(FAINT) == []


def test_on_paper(tab: Tab, page: Make, tmp_path: Path) -> None:
    tab.do("media", "screen", "dark")
    opened(tab, page(*LEAK))
    tab.do("pdf", str(tmp_path / "page.pdf"))
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")
    tab.do("media", "print", "dark")
    assert tab.ask("getComputedStyle(document.body).backgroundColor") in ("rgb(255, 255, 255)", "rgba(0, 0, 0, 0)")
    assert tab.ask("[...document.querySelectorAll('.bar, #time .controls')].every((each) => !each.checkVisibility())")
    assert tab.ask(FAINT) == []
