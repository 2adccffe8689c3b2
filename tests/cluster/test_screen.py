"""The cluster's screens with a real Prometheus: what is drawn, and what keys do."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.cluster.conftest import Monitored
from tests.cluster.exporters import Host, Rank, exporting
from tests.cluster.prometheus import configuration, prometheus
from tests.patience import PATIENCE_S
from tfmemtop.cluster.client import Address, PrometheusClient
from tfmemtop.cluster.watch import Asking, ClusterWatch
from tfmemtop.ui import ScreenOutcome, UiOptions
from tfmemtop.ui.cluster_app import ClusterApp
from tfmemtop.ui.draw.lines import Panel

pytestmark = pytest.mark.screens


def lines(app: ClusterApp) -> list[str]:
    """Return the lines of each panel of the visible screen."""
    return ["".join(segment.text for segment in line) for panel in app.screen.query(Panel) for line in panel._lines]


def shown(app: ClusterApp) -> str:
    return "\n".join(lines(app))


@asynccontextmanager
async def screen(
    url: str, size: tuple[int, int] = (80, 24), *, login: str = "ada:test", ascii_only: bool = False
) -> AsyncIterator[tuple[ClusterApp, Pilot[ScreenOutcome]]]:
    watch = ClusterWatch(Asking(PrometheusClient(Address.of(url, login=login))), 0.3)
    app = ClusterApp(watch, UiOptions(ascii=ascii_only), job=None)
    async with app.run_test(size=size) as pilot:
        yield app, pilot


async def until(app: ClusterApp, seen: Callable[[str], bool]) -> str:
    """Wait until *seen* is true of the text on the screen. Return that text."""
    end = time.monotonic() + PATIENCE_S
    while not seen(text := shown(app)):
        assert time.monotonic() < end, text
        await asyncio.sleep(0.05)
    return text


async def opened(app: ClusterApp) -> str:
    return await until(app, lambda text: "6 rows on 6 hosts, 2 jobs; something is wrong with 3" in text)


async def test_the_smallest_terminal_has_rows_and_the_reason(monitored: Monitored) -> None:
    async with screen(monitored.prometheus.url, (40, 12)) as (app, _):

        def whole(text: str) -> bool:
            """Return whether all hosts have answered: then the table has at least four of their rows."""
            return "6 rows on 6 hosts" in text and sum(f" node{number} " in text for number in range(6)) >= 4

        text = await until(app, lambda text: "75.0 GiB are in use" in text and whole(text))
        assert "full soon" in text


async def test_filter_sort_and_a_way_back(monitored: Monitored) -> None:
    async with screen(monitored.prometheus.url) as (app, pilot):
        await opened(app)
        await pilot.press("slash", *"user:grace")
        assert "keep the filter" in shown(app)
        await pilot.press("enter")
        assert "Ranks and GPUs 1 of 6" in shown(app) and " node3 " not in shown(app)
        await pilot.press("escape", "slash", *"rank:1 node1", "enter")
        assert "Ranks and GPUs 1 of 6" in shown(app)
        await pilot.press("escape", "full_stop")
        hosts = [row.host for row in app.table.arranged]
        assert "sort HOST" in shown(app) and hosts == sorted(hosts)
        await pilot.press("I")
        assert [row.host for row in app.table.arranged] == sorted(hosts, reverse=True)
        await pilot.press("question_mark")
        await until(app, lambda text: "every word must be somewhere in the row" in text)
        await pilot.press("escape", "q")
    assert app.return_value == ScreenOutcome(0)


async def test_prometheus_gone_and_back_loses_nothing(monitored: Monitored) -> None:
    async with screen(monitored.prometheus.url, (120, 24)) as (app, _):
        await opened(app)
        monitored.prometheus.stop()
        try:
            text = await until(app, lambda text: "it cannot be reached (Connection refused), for 00:0" in text)
            assert "the figures are 00:0" in text
            assert " node4 " in text and "full soon 99%" in text
        finally:
            monitored.prometheus.start()
        await opened(app)
        assert "reached" not in shown(app)


@pytest.mark.programs
@pytest.mark.prometheus
async def test_foreign_text_does_not_control_the_terminal(tmp_path: Path) -> None:
    """A label may contain any text in UTF-8."""
    host = Host("n", [Rank(job="\u202ejob\u2069", user="\x1b[31mred\x07", rank="0")])
    host.ranks[0].findings = {"\x1b]0;title\x07": "warning"}
    with exporting([host]) as exporters, prometheus(tmp_path, configuration(exporters.port, ["n"])) as server:
        server.wait_until("tfmemtop_run_info")
        for ascii_only in (False, True):
            async with screen(server.url, (160, 48), ascii_only=ascii_only) as (app, _):
                text = await until(app, lambda text: "?]0;title?" in text and "?[31mred?" in text)
                assert "?job?" in text
                assert text.replace("\n", "").isprintable()
