"""Where a cgroup limits host memory, the host memory that is shown is the container's, and its label names it so."""

from pathlib import Path

import msgspec

from tests import streams as s
from tfmemtop.events import Event, recording
from tfmemtop.limits import HostOwner
from tfmemtop.reports.devices import activity, limited_memory
from tfmemtop.state import State
from tfmemtop.state.fold import apply
from tfmemtop.state.views import host_memory, panels
from tfmemtop.ui.screens.questions import limit_suggestions


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
    assert ("50%", "half of the container's 16.0 GiB") in limit_suggestions([], limited_memory(host_memory(state)))
    plain = s.fold([s.session(), *told])
    assert activity(panels(plain)[0]) == ("host CPU 25%",)
    assert ("50%", "half of the memory there is") in limit_suggestions([], limited_memory(host_memory(plain)))


def test_a_relaunched_scripts_pool_is_as_large_as_was_chosen_until_it_is_read() -> None:
    state, seen = State(), set[tuple[int | None, int | None]]()
    for event in recording.read(Path(__file__).parents[1] / "recordings" / "cpu-demo.jsonl").events():
        apply(state, event)
        seen |= {(panel.capacity, panel.limit) for panel in panels(state)}
    # Of both runs, the second before and after TensorFlow reported its limit. The host's 23.5 GiB are never shown.
    assert seen == {(2048 * s.MIB, 2048 * s.MIB), (900 * s.MIB, None), (900 * s.MIB, 900 * s.MIB)}
