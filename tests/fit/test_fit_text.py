"""The texts about a search: what each step down costs, what to set, and why nothing was found."""

import pytest

from tfmemtop.ending import Ending, Way
from tfmemtop.experiments.fit.largest import LargestSearch, Prediction, Wanted
from tfmemtop.experiments.fit.largest_text import conclusion
from tfmemtop.experiments.fit.plan import Plan, make_plan
from tfmemtop.experiments.fit.search import Result, Search, Tried, TryOutcome
from tfmemtop.experiments.fit.text import advice, finding
from tfmemtop.experiments.fit.watch import Goal
from tfmemtop.settings import Settings
from tfmemtop.units import MIB

FAILED = TryOutcome(result=Result.ENDED, ending=Ending(Way.EXIT, 1))


def tried(limit: int | None, passed: bool, speed: float | None = None, how: TryOutcome | None = None) -> Tried:
    return Tried(
        limit=limit and limit * MIB,
        how=how or TryOutcome(result=Result.REACHED if passed else Result.OUT_OF_MEMORY),
        duration_s=31.2,
        peak_in_use=600 * MIB,
        pool=1000 * MIB,
        speed=speed,
        speed_unit="steps/s" if speed else "",
    )


def plan(has_gpus: bool) -> Plan:
    return make_plan(["x"], Settings(), has_gpus=has_gpus, host_memory=2**40, goal=Goal(1.0), tries=8)


def search(*tries: Tried) -> Search:
    found = Search(tries=8)
    for one in tries:
        found.tell(one)
    return found


WHOLE = search(
    tried(None, True, 100.0), tried(600, False), tried(800, True, 97.0), tried(700, False), tried(750, True, 80.0)
)


def test_the_setting_has_a_margin_and_is_given_as_option_and_as_code() -> None:
    lines = advice(plan(has_gpus=True).suggested(WHOLE), ["python", "my train.py"])
    assert "  tfmemtop --growth on --memory-limit 788M -- python 'my train.py'" in lines
    assert any("LogicalDeviceConfiguration(memory_limit=788)" in line for line in lines)
    # A limit alone would turn off the growth with which it was tried.
    assert any('"TF_FORCE_GPU_ALLOW_GROWTH"] = "true"' in line for line in lines)
    lines = advice(plan(has_gpus=False).suggested(WHOLE), ["x"])
    assert "  tfmemtop --cpu-pool 788M -- x" in lines
    assert '  os.environ["TF_CPU_BFC_MEM_LIMIT_IN_MB"] = "788"' in lines
    compile("\n".join(line[2:] for line in lines[lines.index("  import os") :]), "code", "exec")


def test_why_nothing_was_found_is_said() -> None:
    for tries, said in (
        ((tried(None, False, how=FAILED),), "the script does not pass without a limit either (ended with exit code 1)"),
        ((tried(900, False),), "the largest limit to try, 900.0 MiB, was not enough"),
        ((tried(None, True),), "ended before any limit had worked"),
        ((tried(None, True), *(tried(600 + n, False) for n in range(7))), "in 8 tries"),
    ):
        found = search(*tries)
        assert said in finding(found)[0]
        assert plan(has_gpus=True).suggested(found) is None and advice(None, ["x"]) == []


# The text about the largest value. About values outside the given range nothing is known.


REPLAYED = (8, 13)


@pytest.mark.parametrize(
    ("predicted", "told"),
    [
        ((40, 44, 46), "40 passes, the largest that is likely to pass is ~44, and values above ~46 should fail."),
        ((64, 64, 64), "all values pass up to 64, the end of the range."),
        ((40, 64, 64), "40 passes and all values may pass up to 64, the end of the range."),
        ((40, 60, 64), "40 passes and the largest that is likely to pass is ~60."),
        ((3, 44, 46), "it is not sure that any value passes, the largest that is likely to pass is ~44, and values"),
        ((3, 3, 3), "no value of the range passes."),
        ((3, 3, 7), "it is not sure that any value passes, 4 is likely to fail, and values above ~7 should fail."),
    ],
)
def test_a_prediction_keeps_to_the_range(predicted: tuple[int, int, int], told: str) -> None:
    search = LargestSearch(Wanted("batch", 4, 64), 6)
    search.expect(Prediction(*predicted, REPLAYED))
    (_, said) = conclusion(search, None, None)
    assert said.startswith(f"The replay of the tries with batch=8 and batch=13 predicted: {told}")
