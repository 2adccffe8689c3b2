"""The cluster's screens with a real Prometheus: what is drawn, and what keys do."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace
from textual.pilot import Pilot

from tests.cluster.conftest import Monitored
from tests.cluster.exporters import Host, Rank, exporting
from tests.cluster.prometheus import prometheus
from tests.cluster.recorded import Answering, cluster_screen, settled
from tests.patience import PATIENCE_S
from tfmemtop.cluster.client import Address, Client, ServerAnswer
from tfmemtop.cluster.rows import ClusterRow, Silence
from tfmemtop.cluster.watch import Asking, ClusterWatch
from tfmemtop.options import ScreenOutcome, UiOptions
from tfmemtop.ui.cluster_app import ClusterApp
from tfmemtop.ui.draw.lines import Panel
from tfmemtop.ui.screens.gpu_screen import GpuScreen

pytestmark = pytest.mark.screens

SIZES = ((80, 24), (160, 48))
RATE = re.compile(r"([\d.]+ MiB)(?:/min| a minute)")


def lines(app: ClusterApp) -> list[str]:
    """Return the lines of each panel of the visible screen."""
    return ["".join(segment.text for segment in line) for panel in app.screen.query(Panel) for line in panel._lines]


def shown(app: ClusterApp) -> str:
    return "\n".join(lines(app))


@asynccontextmanager
async def screen(
    url: str, size: tuple[int, int] = SIZES[0], *, login: str = "ada:test", ascii_only: bool = False
) -> AsyncIterator[tuple[ClusterApp, Pilot[ScreenOutcome]]]:
    watch = ClusterWatch(Asking(Client(Address.of(url, login=login))), 0.3)
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
        text = await until(app, lambda text: "full soon" in text)
        assert sum(f" node{number} " in line for line in text.splitlines() for number in range(6)) >= 6
        assert "75.0 GiB are in use" in text


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
        hosts = [row.host for row in app.main.table.arranged]
        assert "sort HOST" in shown(app) and hosts == sorted(hosts)
        await pilot.press("I")
        assert [row.host for row in app.main.table.arranged] == sorted(hosts, reverse=True)
        await pilot.press("question_mark")
        await until(app, lambda text: "every word must be somewhere in the row" in text)
        await pilot.press("escape", "q")
    assert app.return_value == ScreenOutcome(0)


@pytest.mark.parametrize("size", SIZES)
async def test_enter_opens_the_gpu_with_its_history(monitored: Monitored, size: tuple[int, int]) -> None:
    async with screen(monitored.prometheus.url, size) as (app, pilot):
        await opened(app)
        await pilot.press("down", "enter")
        text = await until(app, lambda text: "32.0 of 80.0 GiB" in text)
        assert "node3 GPU 0 · job 42 rank 3 · ada" in text
        assert "in use 20.0G" in text and "-1 h" in text and "peak 24.0G" in text
        assert "its tfmemtop reports a leak" in text
        await pilot.press("w")
        assert "whole run" in shown(app)
        await pilot.press("w", "right_square_bracket")
        await until(app, lambda text: "-6 h" in text)
        await pilot.press("escape")
        assert "Ranks and GPUs 6" in shown(app)


@pytest.mark.parametrize(("columns", "counted"), [(80, False), (160, True)])
async def test_clocks_apart_are_one_line(monitored: Monitored, columns: int, counted: bool) -> None:
    async with screen(monitored.prometheus.url, (columns, 24)) as (app, _):
        await opened(app)
        app.main.look(replace(app.seen, apart_s=-75.0))
        assert "00:01:15 behind" in shown(app)
        assert ("6 rows on 6 hosts" in shown(app)) == counted


async def test_a_gpu_of_which_nothing_is_known_says_so(monitored: Monitored) -> None:
    async with screen(monitored.prometheus.url) as (app, pilot):
        await opened(app)
        row = ClusterRow("gone:9", "gone", "GPU-0", silence=Silence.DOWN)
        app.push_screen(GpuScreen(app.watch_.client, row, app.seen, 1.0, glyphs=app.glyphs, color=True))
        await until(app, lambda text: "Prometheus has no figures of it in the last 01:00:00" in text)
        await pilot.press("escape")
        assert "Ranks and GPUs 6" in shown(app)


async def test_prometheus_gone_and_back_loses_nothing(monitored: Monitored) -> None:
    async with screen(monitored.prometheus.url, (120, 24)) as (app, _):
        await opened(app)
        monitored.prometheus.stop()
        try:
            text = await until(app, lambda text: "it cannot be reached (Connection refused), for 00:00:0" in text)
            assert "the figures are 00:00:0" in text
            assert " node4 " in text and "full soon 99%" in text
        finally:
            monitored.prometheus.start()
        await opened(app)
        assert "reached" not in shown(app)


async def test_a_longer_history_that_was_not_answered_comes_once_it_is(monitored: Monitored) -> None:
    async with screen(monitored.prometheus.url, (120, 24)) as (app, pilot):
        await opened(app)
        await pilot.press("down", "enter")
        await until(app, lambda text: "32.0 of 80.0 GiB" in text)
        gpu = app.screen
        assert isinstance(gpu, GpuScreen)
        monitored.prometheus.stop()
        try:
            await pilot.press("right_square_bracket")
            await until(app, lambda text: "it cannot be reached" in text)
        finally:
            monitored.prometheus.start()
        await until(app, lambda text: "reached" not in text and gpu.gpu.span_s == 6 * 3600)


@pytest.mark.programs
@pytest.mark.prometheus
async def test_foreign_text_does_not_control_the_terminal(tmp_path: Path) -> None:
    """A label may contain any text in UTF-8."""
    host = Host("n", [Rank(job="\u202ejob\u2069", user="\x1b[31mred\x07", rank="0")])
    host.ranks[0].findings = {"\x1b]0;title\x07": "warning"}
    with exporting([host]) as exporters, prometheus(tmp_path, exporters.port, ["n"]) as server:
        server.wait_until("tfmemtop_run_info")
        for ascii_only in (False, True):
            async with screen(server.url, SIZES[1], ascii_only=ascii_only) as (app, pilot):
                text = await until(app, lambda text: "?]0;title?" in text and "?[31mred?" in text)
                assert "?job?" in text
                assert text.replace("\n", "").isprintable()
                while "Ranks and GPUs" in text:  # a refresh in between may discard the key
                    await pilot.press("enter")
                    text = shown(app)
                text = await until(app, lambda text: "rank 0" in text and "of 80.0 GiB" in text)
                assert text.replace("\n", "").isprintable()


async def test_the_rise_of_a_leak_is_the_same_in_all_lines_of_a_gpu() -> None:
    """Prometheus and the rule use different periods of time, so their rates differ in the last digits."""
    app = cluster_screen(UiOptions())
    async with app.run_test(size=SIZES[1]) as pilot:
        await settled(pilot)
        told_by_the_overview = RATE.findall(shown(app))
        await pilot.press("slash", *"job:4190 rank:1", "enter", "enter")
        await settled(pilot)
        rates = RATE.findall(shown(app))
        assert told_by_the_overview and len(rates) == 1


class Counting(Answering):
    """Notes what it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def _get(self, what: str, parameters: dict[str, str]) -> ServerAnswer:
        self.asked.append(what)
        return super()._get(what, parameters)


async def test_the_key_to_refresh_asks_for_the_opened_gpu_too() -> None:
    client = Counting()
    app = ClusterApp(ClusterWatch(Asking(client), 3600.0), UiOptions(), job=None)
    async with app.run_test(size=SIZES[1]) as pilot:
        await settled(pilot)
        await pilot.press("slash", *"job:4190 rank:1", "enter", "enter")
        await settled(pilot)
        assert client.asked.count("query_range") == 1, "the history"
        await pilot.press("r")
        await until(app, lambda _: client.asked.count("query_range") == 2)
