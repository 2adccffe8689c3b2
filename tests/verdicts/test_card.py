"""The card and who is on it: each rule where it holds, and where it just does not."""

import msgspec

from tests import streams as s
from tests.streams import GIB, MIB
from tests.verdicts.situations import (
    HEALTHY,
    POOL_AT_ONCE,
    asked,
    begin,
    effective,
    found,
    limited,
    reading,
    steady,
    wrote,
)
from tfmemtop import events
from tfmemtop.settings import Settings


def test_memory_outside_the_pool() -> None:
    more = [s.device_reading(91.0 + i, {100: 1634 * MIB + 2 * GIB}) for i in range(3)]
    finding = found(HEALTHY, more)["outside-the-pool"]
    assert "2.6 GiB of process 100's memory are outside TensorFlow's pool" in finding.text
    assert "most likely" in finding.text
    assert found(HEALTHY, [s.device_reading(91.0 + i, {100: 1634 * MIB + 400 * MIB}) for i in range(3)]) == {}


def test_a_pool_that_grew_a_moment_ago_is_not_outside() -> None:
    # NVML has seen a region that the allocator's reading has not: for one reading, no more.
    assert found(HEALTHY, s.device_reading(91.0, {100: 1634 * MIB + 2 * GIB})) == {}


def test_a_gpu_that_tensorflow_does_not_see() -> None:
    on_cpu = reading(3.0, MIB, name="CPU:0")
    made = effective(None, name="CPU:0")
    assert found(begin(), made, on_cpu) == {}
    finding = found(begin(), made, on_cpu, reading(8.0, MIB, name="CPU:0"))["no-gpu"]
    assert finding.level == "warning" and "though the driver has 1 GPU here" in finding.text and "may" in finding.text
    told = found(begin(), wrote("W0000 gpu_device.cc:2343] Cannot dlopen some GPU libraries. Please make sure"))
    assert "could not load some of CUDA's libraries" in told["no-gpu"].text


def test_no_gpu_is_no_matter_where_it_is_wished_so_or_not_known() -> None:
    on_cpu = reading(3.0, MIB, name="CPU:0")
    later: list[events.AnyEvent] = [effective(None, name="CPU:0"), on_cpu, reading(9.0, MIB, name="CPU:0")]
    assert found(begin(Settings(gpus=())), later) == {}
    assert found(begin()) == {}
    assert found(begin(gpus=0), later) == {}
    assert found(begin(), later, effective(True), reading(9.1, MIB)) == {}
    hidden = asked("set_visible_devices", "[], GPU")
    assert found(begin(), hidden, later) == {}


def test_logical_devices_beyond_the_card() -> None:
    pair = [*limited(False, 80 * GIB), *limited(False, 80 * GIB, name="GPU:1")]
    assert (
        "have limits of 160.0 GiB together, and the card has 140.0" in found(begin(), pair)["logical-beyond-card"].text
    )
    assert found(begin(), limited(False, 60 * GIB), limited(False, 60 * GIB, name="GPU:1")) == {}


def test_others_held_the_card_when_the_run_started() -> None:
    finding = found(begin(others=60 * GIB), effective(True), s.device_reading(3.0, {100: GIB, 900: 58 * GIB}))
    text = finding["others-hold"].text
    assert "other processes held 60.0 GiB of the card's 140.0 GiB when the run started" in text
    assert "process 900, other.py: 58.0 GiB" in text and "79.4 GiB at most" in text
    with_limit = found(begin(others=60 * GIB), effective(True), reading(3.0, MIB, limit=78 * GIB))["others-hold"]
    assert "its limit is 78.0 GiB" in with_limit.text


def test_where_the_driver_names_no_processes_our_own_memory_is_not_the_others() -> None:
    unnamed = [s.device_reading(3.0 + i, {100: None, 901: 60 * GIB}, missing="inside a container") for i in range(5)]
    assert "others-hold" not in found(begin(), effective(True), unnamed)


def test_others_that_hold_little_or_came_later_or_a_limit_that_was_set() -> None:
    assert found(begin(others=GIB), effective(True)) == {}
    assert found(begin(), effective(True), s.device_reading(3.0, {100: GIB, 900: 60 * GIB})) == {}
    assert found(begin(others=60 * GIB), limited(True, 4 * GIB)) == {}


def twin(run: int | None = None, command: str = "python train.py") -> list[events.AnyEvent]:
    return [s.process(0.7, 200, run=run, command=command), s.alive(1.2, 100, 200, 900)]


def test_two_of_one_script_reserve_everything() -> None:
    both = s.device_reading(3.0, {100: 70 * GIB, 200: 68 * GIB})
    finding = found(begin(), twin(), effective(False), both)["two-reserve"]
    assert "100 (70.0 GiB) and 200 (68.0 GiB), fill the card" in finding.text
    assert "two-reserve" in found(begin(), twin(command="/opt/python -u train.py --lr 3"), effective(False), both)
    worker = [*twin(1, "python -c spawn"), s.hook(1.3, 200), effective(False, pid=200)]
    assert "two-reserve" in found(begin(), worker, effective(False), both)


def test_two_that_share_or_that_have_nothing_in_common() -> None:
    both = s.device_reading(3.0, {100: 70 * GIB, 200: 68 * GIB})
    assert "two-reserve" not in found(begin(), twin(), effective(True), both)
    assert "two-reserve" not in found(begin(), twin(command="python serve.py"), effective(False), both)
    small = s.device_reading(3.0, {100: 3 * GIB, 200: 3 * GIB})
    assert "two-reserve" not in found(begin(), twin(), effective(False), small)


def idling(percent: int, cpu: float, used: int = 138 * GIB, seconds: int = 50) -> list[events.AnyEvent]:
    stream: list[events.AnyEvent] = []
    for t in range(3, 3 + seconds):
        card = s.device_reading(float(t), {100: used})
        stream.append(msgspec.structs.replace(card, utilisation=percent))
        stream.append(
            events.ProcessReadings(
                t=float(t), processes=[events.ProcessReading(100, cpu, GIB), events.ProcessReading(900, 0.0, GIB)]
            )
        )
    return stream


def test_full_but_idle_and_waiting_for_its_input() -> None:
    stream = [*begin(), effective(False), reading(3.0, 100 * GIB, 120 * GIB, POOL_AT_ONCE)]
    finding = found(stream, idling(4, 620.0))["full-but-idle"]
    assert finding.level == "warning"
    assert "busy for 4% of the last 30 s while the script kept 6.2 cores busy: it likely waits" in finding.text
    assert any("prefetch" in line for line in finding.code)
    idle = found(stream, idling(4, 3.0))["full-but-idle"]
    assert idle.level == "info" and "[G]" in idle.remedy


def test_a_busy_gpu_a_free_card_and_a_run_that_has_just_begun_are_not_idle() -> None:
    stream = [*begin(), effective(True)]
    assert found(stream, idling(40, 620.0)) == {}
    assert found(stream, idling(4, 620.0, used=60 * GIB)) == {}
    assert found(stream, idling(4, 620.0, seconds=30)) == {}


def test_a_limit_just_above_the_peak() -> None:
    used = steady(10.0, GIB, 1960 * MIB, 2 * GIB, limit=2 * GIB)
    finding = found(begin(), limited(True, 2 * GIB), used)["limit-tight"]
    assert "comes to 96% of the limit of 2.0 GiB" in finding.text and "[L] 2.1 GiB" in finding.remedy
    assert found(begin(), limited(True, 2 * GIB), steady(10.0, 1700 * MIB, 1900 * MIB, 2 * GIB)) == {}


def test_a_limit_far_above_the_peak_is_told_once_the_peak_has_had_its_time() -> None:
    settled = limited(False, 8 * GIB)
    finding = found(begin(), settled, steady(80.0, GIB, 2 * GIB, 8 * GIB))["limit-loose"]
    assert "4 times the peak in use so far, 2.0 GiB" in finding.text and "[L] 2.2 GiB" in finding.remedy
    assert found(begin(), settled, steady(40.0, GIB, 2 * GIB, 8 * GIB)) == {}
    assert found(begin(), settled, steady(80.0, GIB, 3 * GIB, 8 * GIB)) == {}
    # With growth the limit costs nothing.
    assert found(begin(), limited(True, 8 * GIB), steady(80.0, 2 * GIB, 2 * GIB, 2100 * MIB)) == {}
