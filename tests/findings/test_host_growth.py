"""Host memory that rises: told with its end and its holder where it does, and no finding where it does not."""

import signal

from msgspec.structs import replace

from tests.findings.situations import actions, begin, effective, found, reading
from tests.findings.test_keepers import look
from tests.findings.test_leaks import said
from tests.streams import GIB, MIB
from tfmemtop import events
from tfmemtop.findings.cause import Key
from tfmemtop.findings.finding import Severity
from tfmemtop.findings.remedy import Action
from tfmemtop.findings.review import review, verdict
from tfmemtop.findings.rules.host_growth import HostGrowth
from tfmemtop.findings.rules.leaks import Leak, WindowWishes
from tfmemtop.limits import HostOwner


def host(*sizes: int, since: float = 3.0) -> list[events.Event]:
    """Return events with the host memory of the process once a second, and with four steps a second."""
    return [
        event
        for i, size in enumerate(sizes)
        for event in (
            events.ProcessReadings(
                t=since + i, processes=[events.ProcessReading(100, 100.0, size)], host_used=60 * GIB, host_cpu=50.0
            ),
            events.Functions(t=since + i, pid=100, functions=[events.Traced("train", 4 * i, 1, "/a/train.py", 12)]),
            reading(since + i, 700 * MIB, pool=1026 * MIB),
        )
    ]


def growing(seconds: int, step: int = MIB) -> list[int]:
    return [4 * GIB + step * i for i in range(seconds)]


def test_host_memory_that_rises_step_after_step_is_told_with_its_end() -> None:
    growth = found(begin(), effective(True), host(*growing(180)))[HostGrowth]
    assert abs(growth.rise.rate - MIB) < 0.03 * MIB
    assert growth.each is not None and abs(growth.each - MIB / 4) < 0.03 * MIB
    free = 64 * GIB - 60 * GIB
    assert growth.left_s is not None and abs(growth.left_s - free / MIB) < 100
    assert (
        "by 179.0 MiB in 2 min 59 s" in growth.said.text
        and actions(growth)[0] is Action.TRACE_HOST
        and "tracemalloc" in growth.said.code[0]
        and "~68 min" in growth.said.text
        and growth.severity is Severity.WARNING
    )


def test_a_list_of_arrays_that_makes_up_most_of_the_rise_is_named() -> None:
    def kept(size: int, dtype: str = "", seconds: int = 180) -> HostGrowth:
        arrays = [events.HostArray("frames[*]", [800], dtype, size)]
        seen = replace(look(), t=0.8 * seconds, arrays=arrays)
        stream = sorted([*host(*growing(seconds, step=180 * MIB // seconds)), seen], key=lambda event: event.t)
        return found(begin(), effective(True), stream)[HostGrowth]

    named = kept(100 * MIB)
    assert named.holder == "frames[*]" and "`frames[*]` keeps 800 NumPy arrays" in named.said.headline
    assert actions(named) == [Action.BOUND_ARRAYS] and not named.said.code
    assert not kept(70 * MIB).holder and not kept(100 * MIB, "float32").holder, "too few of them; one array"
    assert kept(100 * MIB, seconds=20).holder == "frames[*]", "as early as it is known"
    for seconds in (20, 180):
        assert WindowWishes().due([*begin(), effective(True), *host(*growing(seconds, 9 * MIB))]) == [100], (
            "a look finds it"
        )

    def again(seconds: int) -> list[int]:
        """Return whether one more look is wanted then, after one that found no list."""
        looked = replace(look(), t=33.0)
        stream = sorted([*host(*growing(seconds, 9 * MIB)), looked], key=lambda event: event.t)
        return WindowWishes().due([*begin(), effective(True), *stream])

    assert again(43) == [] and again(60) == [100], "once it has risen by half as much again"


def test_host_memory_that_rose_explains_an_end_as_by_the_kernel_or_a_person() -> None:
    def key(ended_by: int | None, code: int | None = None, step: int = 8 * MIB) -> str | None:
        end = events.RunEnd(t=190.0, run=1, exit_code=code, signal=ended_by)
        rest = [reading(3.0, MIB, pool=GIB), *host(*growing(180, step=step)), end]
        cause = verdict(review([*begin(), effective(True), *rest]))
        return cause.key if cause else None

    assert key(signal.SIGKILL) == key(signal.SIGINT) == Key.HOST_GROWTH
    assert key(signal.SIGKILL, step=0) == key(None, code=1) == Key.NOT_MEMORY


def test_a_kill_for_host_memory_is_told_with_the_size_of_the_container() -> None:
    session, *rest = begin()
    session = replace(session, host_memory=800 * MIB, host_memory_of=HostOwner.CONTAINER)
    end = events.RunEnd(t=9.0, run=1, exit_code=None, signal=signal.SIGKILL, oom_killed=True)
    cause = verdict(review([session, *rest, effective(True), end]))
    assert cause and cause.key is Key.HOST_GROWTH and "the container's 800.0 MiB" in cause.text


def test_host_memory_of_a_healthy_run_is_no_finding() -> None:
    rest = [*begin(), effective(True)]
    assert HostGrowth not in found(rest, host(*growing(100)))  # so early, caches are still being filled
    assert HostGrowth not in found(rest, host(*growing(60), *[4 * GIB + 60 * MIB] * 200))
    assert HostGrowth not in found(rest, host(*growing(180, step=100_000)))
    loading = [22, 191, 422, 433, 443, 461, 469, 491, 556, 635, 659, 721, 772, 803, 836, 913, 1332, 1884]  # MiB
    loading += [2779, 3861, 4388, 4854, 5447, 5704, 5719, 5980, 6086, 6308, 6349, 6352, 6356, 6367]
    assert HostGrowth not in found(rest, host(*(size * MIB for size in loading))), "CUDA's libraries and kernels"
    assert HostGrowth in found(rest, host(*(200 * MIB * second for second in range(40))))
    rising = [reading(3.0 + i, MIB * i // 5, pool=GIB, name="CPU:0") for i in range(180)]
    both = sorted([*host(*growing(180)), *rising], key=lambda event: event.t)
    assert "pools grew by 3" in found(rest, both)[HostGrowth].said.text, "by less than a quarter of it"
    # Host memory rises here because the CPU's pool, which is a part of it, rises.
    filling = [reading(3.0 + i, MIB * i, pool=GIB, name="CPU:0") for i in range(180)]
    together = sorted([*host(*growing(180)), *filling], key=lambda event: event.t)
    assert HostGrowth not in found(rest, together)


def test_graphs_built_over_and_over_are_why_host_memory_rises() -> None:
    traced = [
        events.Functions(t=3.5 + i, pid=100, functions=[events.Traced("step", 9 * i, 9 * i, "/a/retrace.py", 4)])
        for i in range(60)
    ]
    stream = sorted([*host(*growing(60, step=2 * MIB)), *traced], key=lambda event: event.t)
    growth = found(begin(), effective(True), stream)[HostGrowth]
    assert growth.retraced is not None and actions(growth) == [Action.FIX_ARGUMENTS] and not growth.said.code
    assert "`step` (retrace.py:4) was traced 531 times" in growth.said.text
    # Their constants are a small part of it, in the pool.
    rising = [reading(3.0 + i, GIB + i * MIB // 4, pool=8 * GIB, name="CPU:0") for i in range(240)]
    graphs = [
        replace(traced[0], t=3.6 + i, functions=[replace(traced[0].functions[0], calls=i, traces=i)])
        for i in range(240)
    ]
    both = sorted([*host(*growing(240, step=4 * MIB)), *rising, *graphs], key=lambda event: event.t)
    assert Leak in found(begin(), effective(True), both)
    cause = verdict(review([*begin(), effective(True), *both]))
    assert cause is not None and cause.key is Key.RETRACING
    real = said("retraced-for-ever")[HostGrowth]
    assert "MiB a step" in real and "`step` (retrace.py:4) was traced 1,186 times" in real
