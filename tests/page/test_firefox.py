"""What holds in Chromium holds in Firefox."""

from collections.abc import Callable
from pathlib import Path

from tests.page import test_choosing as choosing
from tests.page import test_opening as opening
from tests.page.browsers import Tab
from tests.page.conftest import Make, Start

CHECKS: tuple[Callable[[Tab, Make], None], ...] = (
    opening.test_every_view_is_drawn,
    opening.test_by_its_own_policy_everything_works_from_a_server,
    choosing.test_a_moment_chosen_among_lifetimes_is_chosen_everywhere,
    choosing.test_keys,
    choosing.test_zoom_by_wheel_and_drag,
)


def test_the_page_works_in_firefox(browsers: Start, page: Make, tmp_path: Path) -> None:
    # One test, since Firefox takes long to start, and several tests may run in several workers.
    firefox = browsers("firefox")
    for check in CHECKS:
        with firefox.tab() as tab:
            check(tab, page)
    with firefox.tab() as tab:
        opening.test_a_recordings_texts_are_texts(tab, opening.attack(tmp_path, "windows/leak.jsonl"))
