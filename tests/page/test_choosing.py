"""What is chosen in one view, by pointer or key, is chosen in all."""

import hashlib
import re

from tests.page.browsers import Tab
from tests.page.conftest import Make
from tests.page.test_opening import LEAK, RESNET, RUNS, alone, opened
from tests.patience import until

PLACE = """(selector) => {
    const element = document.querySelector(selector);
    element.scrollIntoView({ block: "center" });
    const { x, y, width, height } = element.getBoundingClientRect();
    return [x, y, width, height];
}"""


def text(tab: Tab, selector: str) -> str:
    """Return the text of the element that the selector finds first."""
    found: str = tab.ask(f"document.querySelector({selector!r}).textContent")
    return found


def at(tab: Tab, selector: str, across: float, down: float = 0.5) -> tuple[float, float]:
    """Return the point of an element, after it is scrolled into view. *across* and *down* are parts of its size."""
    x, y, width, height = tab.ask(f"({PLACE})({selector!r})")
    return x + across * width, y + down * height


def picture(tab: Tab, view: str) -> str:
    """Return the digest of what the canvas of *view* shows."""
    drawn: str = tab.ask(f"document.querySelector('#{view} canvas').toDataURL()")
    return hashlib.sha256(drawn.encode()).hexdigest()


def test_a_moment_chosen_among_lifetimes_is_chosen_everywhere(tab: Tab, page: Make) -> None:
    file = page(*RESNET)
    opened(tab, file)
    before = picture(tab, "map")
    tab.do("click_at", *at(tab, ".lifetimes .u-over", 0.9))
    now = re.fullmatch(r"(.+) in use (99\.\d) ms into the window\.", text(tab, "#holders .now"))
    assert now
    in_use, moment = now.groups()
    assert text(tab, "#map .about").startswith(f"{in_use} in use in ")
    assert "The buffers of the chosen moment" in text(tab, "#map .about")
    assert text(tab, "#time .legend h3").startswith("at 00:01:07")
    assert tab.ask("document.querySelector('.lifetimes').ariaValueText").startswith(f"{moment} ms into the window")
    assert picture(tab, "map") != before
    tab.do("press", "p")
    assert text(tab, "#holders .now") == "5.8 GiB in use at the peak."
    assert picture(tab, "map") == before
    assert alone(tab, file)


def test_a_moment_chosen_over_time_is_chosen_everywhere(tab: Tab, page: Make) -> None:
    opened(tab, page(*RESNET))
    tab.do("click_at", *at(tab, "#time .u-over", 0.25))
    assert re.match("at 00:00:2[01], run 1", text(tab, "#time .legend h3"))
    assert "No allocations were recorded at that moment" in text(tab, "#holders .now")
    assert text(tab, "#map .about").endswith("no allocations were recorded at the chosen moment.")


def test_a_row_that_is_chosen_is_shown_in_the_other_views(tab: Tab, page: Make) -> None:
    opened(tab, page(*LEAK))
    before = picture(tab, "lifetimes"), picture(tab, "map")
    tab.ask(
        "[...document.querySelectorAll('#holders tbody button')].find((each) => each.textContent === 'weight').click()"
    )
    after = picture(tab, "lifetimes"), picture(tab, "map")
    assert before[0] != after[0] and before[1] != after[1]
    assert tab.ask("document.querySelectorAll('#holders tbody [aria-pressed=true]').length") == 1


def test_keys(tab: Tab, page: Make) -> None:
    opened(tab, page(*LEAK))
    peak = text(tab, "#time .legend h3")
    tab.do("press", "e")
    assert text(tab, "#time .legend h3").startswith("at 00:00:53")
    tab.do("press", "p")
    assert text(tab, "#time .legend h3") == peak
    for _ in range(8):
        tab.do("press", "ArrowLeft")
    assert text(tab, "#time .legend h3") < peak
    whole = picture(tab, "time")
    tab.do("press", "l")
    assert tab.ask("[...document.querySelectorAll('#time [aria-pressed=true]')].map((each) => each.textContent)") == [
        "logarithmic"
    ]
    assert picture(tab, "time") != whole
    tab.do("press", "l")
    tab.do("press", "+")
    until(lambda: picture(tab, "time") != whole)
    tab.do("press", "0")
    until(lambda: picture(tab, "time") == whole)
    tab.do("press", "4")
    assert tab.ask("document.activeElement.id") == "lifetimes"
    tab.do("press", "?")
    assert "Keys" in text(tab, "dialog[open]")
    tab.do("press", "Escape")
    assert tab.ask("document.querySelector('dialog[open]')") is None


def test_zoom_by_wheel_and_drag(tab: Tab, page: Make) -> None:
    opened(tab, page(*RUNS))
    whole = picture(tab, "time")
    x, y = at(tab, "#time .u-over", 0.3)
    tab.do("point", x, y)
    tab.do("wheel", -240)
    until(lambda: picture(tab, "time") != whole)
    tab.ask("[...document.querySelectorAll('#time button')].find((each) => each.textContent === 'all').click()")
    until(lambda: picture(tab, "time") == whole)
    tab.do("drag", x, y, x + 200, y)
    until(lambda: picture(tab, "time") != whole)


def test_lifetimes_zoom_by_wheel_button_and_key(tab: Tab, page: Make) -> None:
    opened(tab, page(*RESNET))
    whole = picture(tab, "lifetimes")
    tab.do("point", *at(tab, ".lifetimes .u-over", 0.3))
    tab.do("wheel", -240)
    until(lambda: picture(tab, "lifetimes") != whole)
    button = "[...document.querySelectorAll('#lifetimes button')].find((each) => each.textContent === 'all')"
    assert tab.ask(f"{button}.title") == "Show the whole time (0, or a double click)"
    tab.ask(f"{button}.click()")
    until(lambda: picture(tab, "lifetimes") == whole)
    tab.ask("document.querySelector('.lifetimes').focus()")
    tab.do("press", "+")
    until(lambda: picture(tab, "lifetimes") != whole)
    assert tab.ask("document.querySelector('#holders .about').title").startswith("A window is a time, usually one step")


def test_another_run(tab: Tab, page: Make) -> None:
    opened(tab, page(*RUNS))
    verdict = text(tab, "#verdict .verdict")
    assert "run 5" in text(tab, "#time .legend h3")
    tab.ask(
        """(() => {
            const select = document.querySelector(".bar select");
            select.selectedIndex = 0;
            select.dispatchEvent(new Event("change"));
        })()"""
    )
    assert text(tab, "#verdict .verdict") != verdict
    assert "run 1" in text(tab, "#time .legend h3")


def test_rows_are_sorted_and_filtered_and_still_add_up(tab: Tab, page: Make) -> None:
    opened(tab, page(*RESNET))
    tab.do("click", "#holders .filter")
    tab.do("type", "gradients")
    kinds = tab.ask("[...document.querySelectorAll('#holders tbody tr')].map((row) => row.cells[1].textContent)")
    assert kinds and all("gradients" in kind for kind in kinds)
    sizes = tab.ask("[...document.querySelectorAll('#holders [data-bytes]')].map((each) => Number(each.dataset.bytes))")
    assert sum(sizes[:-1]) == sizes[-1]
    names = "[...document.querySelectorAll('#holders tbody tr')].map((row) => row.cells[0].textContent)"
    tab.ask("document.querySelector('#holders th button').click()")
    assert tab.ask(names) == sorted(tab.ask(names))
