"""Large allocations for which TensorFlow names no operation: under XLA, the temporary buffers of clusters. Pure."""

import msgspec

from tfmemtop.events import Holders
from tfmemtop.state.lookup import of_run
from tfmemtop.state.memo import once_per_revision
from tfmemtop.state.model import Hooked, State
from tfmemtop.state.operation_names import Phase, named
from tfmemtop.state.step_course import once_per_window, unpacked

SHARE = 0.5
"""The share of the peak above which a buffer is reported."""


class UnnamedBuffer(msgspec.Struct, frozen=True):
    """``bytes`` that were requested at once on ``device`` of process ``pid``, of ``peak`` bytes in use."""

    pid: int
    device: str
    bytes: int
    peak: int


@once_per_revision
def unnamed_buffers(state: State) -> list[UnnamedBuffer]:
    """Return the newest run's buffers of more than half of a window's peak that XLA's report may explain."""
    found = []
    for pid, process in state.processes.items():
        hooked = process.hooked
        if hooked and of_run(state, pid) and not _told(hooked):
            for device, windows in hooked.windows.items():
                newest = next((one for one in reversed(windows.newest) if not one.is_missing), None)
                size = _largest(newest, hooked) if newest else 0
                if newest and size > SHARE * newest.peak:
                    found.append(UnnamedBuffer(pid, device, size, newest.peak))
    return found


def _told(hooked: Hooked) -> bool:
    """Return whether a report was requested and is missing for a known reason: a second request would not help."""
    return any(cluster.missing is not None for cluster in hooked.clusters.values())


def _largest(window: Holders, hooked: Hooked) -> int:
    """Return the bytes of the largest nameless allocation of *window* that is not in a report; 0 if there is none."""
    reported = {cluster.temporary for cluster in hooked.clusters.values()}
    return max((size for size in _nameless_sizes(window) if size not in reported), default=0)


@once_per_window
def _nameless_sizes(window: Holders) -> list[int]:
    """Return the bytes of each allocation in *window* that has no name, or the name of a whole function."""
    course = unpacked(window)
    return [
        kind.requested
        for kind in course.kinds
        if kind.window == window.window  # the names of older allocations were never recorded
        and (not course.name(kind) or named(course.name(kind)).phase is Phase.FUNCTION)
    ]
