"""The texts about a search: what each step down costs, what to set, and why nothing was found."""

from tfmemtop.experiments.fit.plan import Plan
from tfmemtop.experiments.fit.search import LimitSearch, Result, Tried, TryOutcome
from tfmemtop.experiments.fit.text import advice, conclusion
from tfmemtop.experiments.fit.watch import Goal
from tfmemtop.settings import Settings
from tfmemtop.units import MIB

FAILED = TryOutcome(Result.ENDED, "ended with exit code 1")


def tried(limit: int | None, passed: bool, speed: float | None = None, how: TryOutcome | None = None) -> Tried:
    return Tried(
        limit=limit and limit * MIB,
        how=how or TryOutcome(Result.REACHED if passed else Result.OUT_OF_MEMORY),
        duration_s=31.2,
        peak_in_use=600 * MIB,
        pool=1000 * MIB,
        steps_per_s=speed,
    )


def plan(has_gpus: bool) -> Plan:
    return Plan(command=["x"], settings=Settings(), has_gpus=has_gpus, host_memory=2**40, goal=Goal(1.0), tries=8)


def search(*tries: Tried) -> LimitSearch:
    found = LimitSearch(tries=8)
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
        assert said in conclusion(found, "", None)[0]
        assert plan(has_gpus=True).suggested(found) is None and advice(None, ["x"]) == []
