"""The inside of a pool: the map's screen gets it from the events alone."""

import re
from pathlib import Path

import msgspec

from tests import pools
from tests import streams as s
from tests.pools import MIB
from tfmemtop import events
from tfmemtop.events import Event, ProbeState, recording
from tfmemtop.findings.missing import no_map
from tfmemtop.limits import HostOwner
from tfmemtop.reports.devices import activity
from tfmemtop.state import State
from tfmemtop.state.fold import apply
from tfmemtop.state.pool_views import PoolMap, choose, pool_map
from tfmemtop.state.pool_views import pools as known_pools
from tfmemtop.state.views import host_memory, panels

KEY = (100, "GPU:0")
CUTS: list[pools.Cut] = [
    [(2 * MIB, True)],
    [(MIB, True), (3 * MIB, False)],
    [(6 * MIB, True), (MIB, False), (MIB, True)],
]


def view(stream: list[events.Event], zoom: int | None = None, out_of_memory: bool = False) -> PoolMap:
    found = pool_map(s.fold(stream), KEY, zoom=zoom, out_of_memory=out_of_memory)
    assert found is not None
    return found


def test_each_region_is_joined_with_the_moment_it_was_taken() -> None:
    found = view(pools.watched(CUTS))
    assert [round(r.taken_s or 0, 3) for r in found.regions] == [1.855, 3.355, 4.855]  # since the run began
    assert all(r.sure for r in found.regions)
    assert [(g.change, g.after, g.region, g.full) for g in found.growths] == [
        (2 * MIB, 2 * MIB, 1, 100),
        (4 * MIB, 6 * MIB, 2, 25),
        (8 * MIB, 14 * MIB, 3, 88),
    ]


def test_of_regions_alike_none_is_said_to_be_surely_the_one() -> None:
    found = view(pools.watched([[(4 * MIB, True)], [(4 * MIB, False)], [(8 * MIB, True)]]))
    assert [r.sure for r in found.regions] == [False, False, True]
    assert [g.region for g in found.growths] == [None, None, 3]


def test_a_region_taken_before_the_watching_began_has_no_time() -> None:
    stream: list[events.Event] = [e for e in pools.watched(CUTS) if not isinstance(e, events.PoolGrowth)]
    assert [r.taken_s for r in view(stream).regions] == [None] * 3


def test_a_region_given_back_takes_its_moment_along() -> None:
    stream = pools.watched(CUTS)
    back = events.PoolGrowth(t=20.0, pid=100, device="GPU:0", at=19.9, before=14 * MIB, after=6 * MIB)
    again = events.PoolGrowth(t=25.0, pid=100, device="GPU:0", at=24.9, before=6 * MIB, after=14 * MIB)
    assert round(view([*stream[:-1], back, again, stream[-1]]).regions[2].taken_s or 0, 1) == 24.8


def test_the_map_of_a_failure_stays_when_the_process_has_gone() -> None:
    full = pools.memory_map(40.0, [[(2 * MIB, True)]], out_of_memory=True)
    gone: list[events.Event] = [events.HookEnd(t=41.0, pid=100, reason=events.HookEnding.LOST), s.alive(42.0, 7)]
    stream = [*pools.watched(CUTS), full, *gone]
    assert view(stream, out_of_memory=True).read.in_use == 2 * MIB and view(stream).read.pool == 14 * MIB
    state = s.fold([*stream, s.run(50.0, number=2, pid=200)])
    assert pool_map(state, KEY, out_of_memory=True) is None and choose(state) is None


UNKNOWN_LAYOUT = events.Distrust(events.Fault.LAYOUT_UNKNOWN, "2.99")


def test_why_there_is_no_map() -> None:
    stream = pools.watched(CUTS)[:-1]
    unbuilt = events.Unbuilt(events.Unbuildable.NO_COMPILER, detail="apt install g++")
    lacking = events.Probe(t=9.0, pid=100, state=ProbeState.UNAVAILABLE, unbuilt=unbuilt)
    assert no_map(s.fold([*stream, lacking]), KEY) == ("there is no C++ compiler", "apt install g++")
    building = events.Probe(t=9.0, pid=100, state=ProbeState.BUILDING)
    assert "being built" in no_map(s.fold([*stream, building]), KEY)[0]
    public = events.Probe(t=9.1, pid=100, state=ProbeState.PUBLIC, distrust=UNKNOWN_LAYOUT)
    both = no_map(s.fold([*stream, public, lacking]), KEY)
    assert both == no_map(s.fold([*stream, lacking, public]), KEY)
    assert re.search(r"no C\+\+ compiler; .*TensorFlow 2\.99 is not known", both[0]) and both[1] == "apt install g++"
    # Pools are read in place: the missing compiler is not the reason.
    direct = events.Probe(t=9.1, pid=100, state=ProbeState.DIRECT)
    assert "no map has been read yet" in no_map(s.fold([*stream, direct, lacking]), KEY)[0]
    assert "process 7" in no_map(s.fold(stream), (7, "GPU:0"))[0]


def test_pools_of_the_living_come_first() -> None:
    other: list[events.Event] = [
        s.hook(1.0, 90),
        s.allocator(2.0, 90, in_use=1, name="CPU:0"),
        s.allocator(2.0, 90, in_use=1),
    ]
    state = s.fold([*pools.watched(CUTS), *other, events.HookEnd(t=31.0, pid=90, reason=events.HookEnding.EXIT)])
    assert known_pools(state) == [(100, "GPU:0"), (90, "GPU:0"), (90, "CPU:0")]
    assert choose(state) == (100, "GPU:0") and choose(state, 90) == (90, "GPU:0")


def test_the_cpus_pool_stands_in_the_containers_memory() -> None:
    session = msgspec.structs.replace(s.session(), host_memory=16 * s.GIB, host_memory_of=HostOwner.CONTAINER)
    told: list[Event] = [
        s.run(),
        s.process(0.2, 100),
        s.hook(0.3, 100),
        s.allocator(0.4, 100, s.GIB, name="CPU:0"),
        s.alive(1, 100),
    ]
    state = s.fold([session, *told])
    (panel,) = panels(state)
    assert panel.capacity == 16 * s.GIB
    assert activity(panel) == ("host CPU 25%", "8.0 of the container's 16.0 GiB")
    assert host_memory(state).limited == "the container's 16.0 GiB"
    plain = s.fold([s.session(), *told])
    assert activity(panels(plain)[0]) == ("host CPU 25%",)
    assert host_memory(plain).limited is None


def test_a_relaunched_scripts_pool_is_as_large_as_was_chosen_until_it_is_read() -> None:
    state, seen = State(), set[tuple[int | None, int | None]]()
    for event in recording.read(Path(__file__).parents[1] / "recordings" / "cpu-demo.jsonl").events():
        apply(state, event)
        seen |= {(panel.capacity, panel.limit) for panel in panels(state)}
    # Of both runs, the second before and after TensorFlow reported its limit. The host's 23.5 GiB are never shown.
    assert seen == {(2048 * s.MIB, 2048 * s.MIB), (900 * s.MIB, None), (900 * s.MIB, 900 * s.MIB)}
