"""Which samples are made from a session: from recordings with GPUs, at many moments."""

from collections import Counter, deque

import msgspec
import pytest
from msgspec.structs import replace
from prometheus_client.metrics_core import Metric

from tests.metrics.scraping import RECORDINGS, events_until, get, parsed, scrape, served, value, watched
from tests.streams import GIB, MIB, allocator, device, device_reading, effective, fold, hook, process, run, session
from tfmemtop import help
from tfmemtop.engine.metrics import UNUSED
from tfmemtop.engine.metrics.families import HELP, PREFIX, families, finding_key
from tfmemtop.events import Allocator
from tfmemtop.events.machine import Workload
from tfmemtop.findings.judgement import findings
from tfmemtop.state import State
from tfmemtop.state.fold import apply

NAMES = sorted(path.name for path in RECORDINGS.glob("*.jsonl"))


def seen(name: str, share: float) -> tuple[State, dict[str, Metric]]:
    state = State()
    for event in events_until(name, share):
        apply(state, event)
    return state, named(families(state))


def named(found: list[Metric]) -> dict[str, Metric]:
    """Return the families by the names that their samples have after the prefix."""
    return {family.samples[0].name.removeprefix(PREFIX): family for family in found}


def by(family: Metric | None, *labels: str) -> Counter[tuple[str, ...]]:
    """Return the sums of a family's samples by these labels."""
    found: Counter[tuple[str, ...]] = Counter()
    for sample in family.samples if family else ():
        found[tuple(sample.labels.get(label, "") for label in labels)] += int(sample.value)
    return found


@pytest.mark.parametrize("share", [0.5, 1.0])
@pytest.mark.parametrize("name", NAMES)
def test_no_series_comes_twice_and_none_names_a_process_or_a_command(name: str, share: float) -> None:
    state, found = seen(name, share)
    pids = {str(pid) for pid in state.processes}
    for metric, family in found.items():
        series = [tuple(sorted(sample.labels.items())) for sample in family.samples]
        assert len(set(series)) == len(series), metric
        for labels in (sample.labels for sample in family.samples):
            values = {value for label, value in labels.items() if label not in ("run", "index")}
            assert not values & pids
            words = state.run.argv if state.run else ()
            assert not [word for word in words if any(word and word in value for value in values if "/" in word)]


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("h")])
def test_context_pool_and_outside_add_up_to_the_process_total(name: str) -> None:
    checked = 0
    state, told = State(), 0
    for percent in range(5, 100, 5):
        events = events_until(name, percent / 100)
        for event in events[told:]:
            apply(state, event)
        told = len(events)
        found = named(families(state))
        outside, context = by(found.get("outside_bytes"), "uuid"), by(found.get("context_bytes"), "uuid")
        pool = by(found.get("pool_bytes"), "uuid")
        for gpu, total in by(found.get("process_total_bytes"), "uuid").items():
            if gpu in outside:
                assert context[gpu] + pool[gpu] + outside[gpu] == total
                checked += 1
    assert checked


OF_SOME_CARDS = {
    "device_fan_ratio",
    "device_encoder_ratio",
    "device_decoder_ratio",
    "device_pcie_receive_bytes_per_second",
    "device_pcie_transmit_bytes_per_second",
    "device_nvlink_receive_bytes_per_second",
    "device_nvlink_transmit_bytes_per_second",
}


def test_a_recorded_gpu_has_every_metric() -> None:
    _, found = seen("h100-transformer.jsonl", 0.6)
    assert set(HELP) - set(found) <= {"finding", *OF_SOME_CARDS}
    (card,) = by(found["device_memory_total_bytes"], "uuid")
    assert card[0].startswith("GPU-")
    assert found["steps_total"].type == "counter" and found["in_use_bytes"].type == "gauge"


def test_two_gpus_have_a_pool_each() -> None:
    _, found = seen("h200-two-cards.jsonl", 0.7)
    assert len(by(found["in_use_bytes"], "uuid", "device")) == 2 == len(by(found["device_info"], "uuid"))


def test_an_ended_run_has_no_memory_in_use_but_its_peak() -> None:
    _, found = seen("cpu-demo.jsonl", 1.0)
    assert "in_use_bytes" not in found and by(found["peak_bytes"], "device")
    assert by(found["running"], "run") == {("2",): 0}


@pytest.mark.parametrize("name", NAMES)
def test_what_the_exporter_leaves_out_changes_nothing(name: str) -> None:
    _, found = seen(name, 0.9)
    needed = [event for event in events_until(name, 0.9) if not isinstance(event, UNUSED)]
    told = named(families(fold(needed)))
    assert told == found


def two_processes(first_until: float) -> State:
    """Return a state with two processes, each with 1 GiB in use on the same GPU.

    The first has readings until *first_until*, the other from then until second 20.
    """
    readings = [allocator(t, 100, GIB, pool=2 * GIB) for t in (2.0, first_until)]
    readings += [allocator(t, 101, GIB, pool=2 * GIB) for t in (first_until + 1, 20.0)]
    begun = [make(t, pid) for t, make in ((0.3, process), (0.4, hook), (0.5, effective)) for pid in (100, 101)]
    return fold([session(), device(), run(), *begun, *readings])


def test_processes_on_one_gpu_are_added_up_while_they_are_there() -> None:
    found = named(families(two_processes(19.0)))
    assert by(found["in_use_bytes"], "uuid", "device", "run") == {("GPU-0", "GPU:0", "1"): 2 * GIB}
    assert by(found["peak_bytes"], "uuid") == {("GPU-0",): GIB}


def test_what_is_held_on_a_gpu_is_told_by_container_and_job() -> None:
    of_pod, of_job = Workload(pod="train-0"), Workload(job="812")
    begun = [
        *(replace(process(0.3, pid), workload=of_pod) for pid in (100, 101)),
        replace(process(0.3, 102), workload=of_job),
        process(0.3, 103),
    ]
    held = device_reading(1.0, {100: GIB, 101: 2 * GIB, 102: None, 103: MIB})
    found = named(families(fold([session(), device(), run(), *begun, held])))
    assert by(found["device_workload_bytes"], "uuid", "workload") == {("GPU-0", "train-0"): 3 * GIB, ("GPU-0", ""): MIB}


def test_the_findings_are_those_of_the_rules() -> None:
    state, found = seen("cpu-oom.jsonl", 1.0)
    told = {(labels["key"], labels["severity"]) for labels in (sample.labels for sample in found["finding"].samples)}
    assert told == {(finding_key(finding), finding.severity.name.lower()) for finding in findings(state)}
    assert "run_ended" in told.pop() or told


def test_every_metric_is_explained_and_stands_in_the_manual_as_does_every_key() -> None:
    page = help.topic("metrics")
    assert [name for name in HELP if f"`{name}`" not in page] == []
    assert "`tight_limit`" in page and "`rule_failed`" in page and "`judged`" in page


def test_a_host_whose_name_is_no_text_is_exported() -> None:
    with served(watched([msgspec.structs.replace(session(), host="a\udce4"), run()])) as url:
        _, text = get(url)
    assert {dict(labels)["host"] for _, labels in parsed(text)} == {"a?"}


# The highest use of late, which is the same for every reader.


def test_a_millisecond_between_two_scrapes_is_seen_by_every_prometheus_server() -> None:
    """Only ``high`` shows this spike: it is lower than the peak, and over before the reading."""
    before = events_until("cpu-demo.jsonl", 0.5)
    newest = next(event for event in reversed(before) if isinstance(event, Allocator))
    assert newest.in_use is not None
    used = newest.in_use
    events = deque(before)

    def reading(after_s: float, high: int) -> Allocator:
        return Allocator(
            t=newest.t + after_s, pid=newest.pid, device=newest.device, allocator=newest.allocator, in_use=used,
            peak=newest.peak, pool=newest.pool, limit=newest.limit, high=high,
        )  # fmt: skip

    with served(watched(events)) as url:

        def highest() -> float | None:
            return value(scrape(url), "in_use_high_bytes")

        highest()
        events.extend([reading(1, used + 64 * MIB), reading(2, used)])
        assert highest() == highest() == used + 64 * MIB
        events.append(reading(125, used))
        assert highest() == used
