"""The highest use since a reader's last look, for any number of readers."""

from collections import deque

from hypothesis import given
from hypothesis import strategies as st

from tests.metrics.scraping import events_until, scrape, served, value
from tests.streams import MIB
from tfmemtop.engine.metrics.state import READERS, Highs, MetricsState, RecentHighs
from tfmemtop.events import Allocator

PLACE = ("", "CPU:0")


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "c", ""]), st.integers(0, 1000)), max_size=60))
def test_each_reader_sees_the_highest_of_its_own_interval(steps: list[tuple[str, int]]) -> None:
    highs = Highs()
    sizes: list[int] = []
    looked: dict[str, int] = {}
    for reader, size in steps:
        if not reader:
            sizes.append(size)
            highs.add(PLACE, size)
            continue
        assert highs.take(reader).get(PLACE) == max(sizes[looked.get(reader, 0) :], default=None)
        looked[reader] = len(sizes)


def test_a_thousand_readers_cost_no_more_than_a_few() -> None:
    highs = Highs()
    highs.take("patient")
    for number in range(1000):
        highs.take(number)
    assert len(highs._since) == READERS


def test_another_run_begins_anew() -> None:
    highs, lately = Highs(), RecentHighs(3)
    highs.take("a")
    highs.add(PLACE, 7)
    lately.add({PLACE: 7})
    highs.restart()
    lately.restart()
    assert highs.take("a") == highs.take("new") == lately.add({}) == {}


def test_a_file_tells_the_highest_of_several_looks() -> None:
    lately = RecentHighs(3)
    assert [lately.add(marks).get(PLACE) for marks in ({PLACE: 1}, {PLACE: 9}, {}, {PLACE: 2}, {})] == [1, 9, 9, 9, 2]


def test_a_millisecond_between_two_scrapes_is_seen_by_both_prometheus_servers_once() -> None:
    """Only ``high`` shows this spike: it is lower than the peak, and over before the reading."""
    before = events_until("cpu-demo.jsonl", 0.5)
    newest = next(event for event in reversed(before) if isinstance(event, Allocator))
    assert newest.in_use is not None
    used = newest.in_use
    events = deque(before)

    def reading(high: int) -> Allocator:
        return Allocator(
            t=newest.t + 1, pid=newest.pid, device=newest.device, allocator=newest.allocator, in_use=used,
            peak=newest.peak, pool=newest.pool, limit=newest.limit, high=high,
        )  # fmt: skip

    with served(MetricsState(events)) as url:

        def highest(agent: str, query: str = "") -> float | None:
            return value(scrape(url + query, agent), "in_use_high_bytes")

        highest("first"), highest("second"), highest("first", "?scraper=b")
        events.extend([reading(used + 64 * MIB), reading(used)])
        assert highest("first") == used + 64 * MIB
        assert highest("first") == used
        assert highest("second") == used + 64 * MIB
        assert highest("first", "?scraper=b") == used + 64 * MIB
        assert highest("second") == used
