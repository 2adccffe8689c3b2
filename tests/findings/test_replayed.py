"""The limit that a replay gives: it is suggested first, for the growth that is set, if it covers the whole run."""

from typing import Any

import msgspec
import pytest

from tests import streams
from tests.findings.situations import effective, reading
from tests.streams import GIB, MIB
from tests.whatif.test_command import replayed_on_a_gpu
from tfmemtop import events
from tfmemtop.findings.fitting import suggested_limits
from tfmemtop.findings.limit_texts import basis, sentences
from tfmemtop.findings.memory import out_of_memory
from tfmemtop.settings import Settings
from tfmemtop.state import State
from tfmemtop.suggested import Basis, with_margin

SETTINGS = Settings()


def state(peak: int = 10 * GIB, *, over: bool = True, **changed: Any) -> State:
    """Return the state after a run with growth on, whose pool reached 12 GiB. *changed*: fields of its replay."""
    stream: list[events.Event] = [
        *(streams.session(), streams.run(), streams.process(0.2, 100), streams.device(), streams.hook(0.4, 100)),
        *(streams.effective(0.5, 100), streams.allocator(2.0, 100, 8 * GIB, peak, 12 * GIB)),
        msgspec.structs.replace(replayed_on_a_gpu(), **changed),
    ]
    if over:
        stream.append(events.RunEnd(t=20.0, run=1, exit_code=0, signal=None))
    return streams.fold(stream)


def suggested(state: State, settings: Settings = SETTINGS) -> list[tuple[int, Basis, str | None]]:
    found = suggested_limits(state, settings, ["python", "train.py"])
    return [(round(limit.size / GIB / 1.05), limit.basis, limit.growth) for limit in found]


def test_the_end_that_is_surely_enough_comes_first_for_the_growth_that_is_set() -> None:
    assert suggested(state()) == [(15, Basis.REPLAYED, "on")]
    assert suggested(state(), Settings(growth="off")) == [(20, Basis.REPLAYED, "off")]
    assert suggested(state(over=False)) == [(15, Basis.REPLAYED_SO_FAR, "on")]
    (limit,) = suggested_limits(state(), Settings(), ["python", "train.py"])
    assert basis(limit) == "replayed with TensorFlow's own allocator: 1,000 allocations of 20 steps"
    assert list(sentences(limit)) == [
        "A limit of 16128M with growth on rests on 1,000 allocations of 20 steps, which fit under it with a margin, "
        "replayed with TensorFlow's own allocator. Under less than 12.0 GiB they do not fit, even if some wait until "
        "others have freed memory."
    ]


@pytest.mark.parametrize(
    "changed", [{"lost": 3}, {"unreplayed": events.Unreplayed.UNBUILT}, {"whole": False}, {"peak": 11 * GIB}]
)
def test_a_replay_that_does_not_speak_for_the_run_suggests_nothing(changed: dict[str, Any]) -> None:
    assert all(found not in (Basis.REPLAYED, Basis.REPLAYED_SO_FAR) for _, found, _ in suggested(state(**changed)))


def test_a_peak_that_rose_a_little_since_is_added() -> None:
    later = 10 * GIB + 300 * MIB
    (limit,) = suggested_limits(state(later), Settings(), ["python", "train.py"])
    assert (limit.basis, limit.size) == (Basis.REPLAYED, with_margin(15 * GIB + 300 * MIB))


def failed_again(limit: int, growth: bool, **changed: Any) -> str:
    """Return the text about the second run, which ran out under *limit* bytes. The replay of the first is known."""
    first = msgspec.structs.replace(replayed_on_a_gpu(), kept=3 * GIB, **changed)
    stream: list[events.Event] = [
        *(streams.session(), streams.run(), streams.process(0.2, 100), streams.device(), streams.hook(0.4, 100)),
        *(streams.effective(0.5, 100), streams.allocator(2.0, 100, 8 * GIB, 10 * GIB, 12 * GIB), first),
        *(events.RunEnd(t=20.0, run=1, exit_code=0, signal=None), streams.run(21.0, 2, 200)),
        *(streams.process(21.2, 200, run=2), streams.hook(21.4, 200)),
        msgspec.structs.replace(effective(growth, limit, 21.5, 200), pid=200),
        reading(22.0, 7 * GIB, 8 * GIB, 9 * GIB, limit, pid=200),
        events.OutOfMemory(t=23.0, pid=200, message="OOM", device="GPU:0", requested=GIB, operation="MatMul"),
    ]
    (found,) = out_of_memory(streams.fold(stream))
    return found.said.figures


def test_running_out_says_what_would_have_passed_by_the_replay_of_an_earlier_run() -> None:
    said = failed_again(9 * GIB, growth=True)
    assert said.startswith(
        "The allocations of run 1, replayed, surely fit under a limit of 15360M with growth on (at least 12288M) "
        "or of 20480M with growth off (at least 19456M). With this limit ~50 % of the batch would fit."
    )
    off = [
        events.SmallestLimits(True, True, 15 * GIB, 12 * GIB),
        events.SmallestLimits(False, True, 11 * GIB, 10 * GIB),
    ]
    assert "Under this limit they fit with growth off." in failed_again(12 * GIB, growth=True, smallest=off)
    assert "replayed" not in failed_again(9 * GIB, growth=True, whole=False)
    assert "replayed" not in failed_again(9 * GIB, growth=True, lost=1)
