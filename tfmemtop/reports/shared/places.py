"""The memory of each GPU and of the CPU's pool over time, from the histories of the state. Pure."""

from itertools import pairwise

from tfmemtop.frameworks import FrameworkName
from tfmemtop.reports.shared.data import PageLayer, PagePlace
from tfmemtop.state import State
from tfmemtop.state.history import WIDTHS_S, History, Sample
from tfmemtop.state.views import DevicePanel, LayerKind, panels

CPU = "cpu"
"""The key of the CPU's pool; that of a GPU is its NVML index."""

COLUMNS = 1500
"""The most columns of a place; its newest minutes have a third more, which are finer."""

_LAYERS = {
    LayerKind.IN_USE: ("in_use", "in use"),
    LayerKind.CACHED: ("cached", "cached"),
    **{LayerKind(framework.value): (framework.value, framework.title) for framework in FrameworkName},
    LayerKind.REST: ("outside", "context and outside"),
    LayerKind.OTHERS: ("others", "other processes"),
}
"""The key and the name of each layer."""


def places(state: State, columns: int = COLUMNS) -> list[PagePlace]:
    """Return the GPUs in the order of their numbers, then the CPU's pool, each in at most *columns* columns."""
    return [_place(state, panel, columns) for panel in panels(state)]


def _place(state: State, panel: DevicePanel, columns: int) -> PagePlace:
    gpu = panel.gpu
    key, name = (CPU, "CPU pool") if gpu is None else (str(gpu.index), f"GPU {gpu.index}")
    course = _course(panel.history, state.now, columns)
    layers = []
    for at, kind in enumerate(panel.kinds):
        layer, title = _LAYERS[kind]
        sizes = [sample[at] - (sample[at - 1] if at else 0) for _, sample in course]
        if kind is LayerKind.IN_USE or any(sizes):  # what the driver does not tell is no zero
            layers.append(PageLayer(key=layer, name=title, bytes=[*sizes]))
    on = CPU if gpu is None else name  # as in a run's limits
    return PagePlace(
        key=key,
        name=name,
        model=gpu.name if gpu else "",
        total=gpu.total if gpu else None,
        times=[t for t, _ in course],
        layers=layers,
        limits={str(run.run): limit for run in state.runs if (limit := run.limit_on.get(on))},
    )


def _course(history: History, now: float, columns: int) -> list[tuple[float, Sample]]:
    """Return the beginning of each stretch and the highest of its samples; it holds until the next one."""
    finest_s = width_s = WIDTHS_S[0]
    while now / width_s > columns:
        width_s *= 2
    stop = History.newest_column(finest_s, now) + 1
    fine = max(0, stop - columns // 3) if width_s > finest_s else 0
    found: list[tuple[float, Sample]] = [
        (number * each_s, sample)
        for each_s, first, end in ((width_s, 0, -int(-fine * finest_s // width_s)), (finest_s, fine, stop))
        for number, sample in enumerate(history.read(now - first * each_s, each_s, first, end), first)
        if sample is not None
    ]
    return found[:1] + [one for before, one in pairwise(found) if one[1] != before[1]]
