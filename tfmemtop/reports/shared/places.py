"""The memory of each GPU and of the CPU's pool over time, as a page has it. Pure."""

from collections.abc import Sequence
from itertools import pairwise

import msgspec

from tfmemtop.frameworks import FrameworkName
from tfmemtop.reports.shared.data import PageLayer, PageLimit, PagePlace
from tfmemtop.state import State
from tfmemtop.state.account import context_size
from tfmemtop.state.history import History, Sample
from tfmemtop.state.lookup import of_run

CPU = "cpu"
"""The key of the CPU's pool; that of a GPU is its NVML index."""

FINE_S = 120.0
"""The length of the newest stretch of time that a page shows as finely as it was read."""

_FRAMEWORKS = {name.value: name.title for name in FrameworkName}
LAYERS = {
    "in_use": "in use",
    "cached": "cached",
    **_FRAMEWORKS,
    "context": "CUDA context",
    "outside": "outside the pool",
    "others": "other processes",
}


class RunSpan(msgspec.Struct, frozen=True):
    """When a run went on, its limits by place, and the bytes of its processes' CUDA contexts by NVML index."""

    number: int
    began: float
    ended: float
    limits: dict[str, int]
    contexts: dict[int, int]


def run_span(state: State) -> RunSpan:
    """Return the span of the newest run. It must be called before the next one begins."""
    run = state.run
    assert run is not None
    hooked = [process.hooked for pid, process in state.processes.items() if process.hooked and of_run(state, pid)]
    contexts = {
        index: sum(context_size(one, index)[0] for one in hooked if index in one.contexts) for index in state.devices
    }
    limits = {CPU if place == CPU else place.removeprefix("GPU "): limit for place, limit in run.limit_on.items()}
    return RunSpan(run.run, run.started, state.now if run.ended is None else run.ended, limits, contexts)


def page_places(state: State, spans: Sequence[RunSpan]) -> list[PagePlace]:
    """Return the GPUs in the order of their numbers, then the CPU's pool."""
    found = [
        _place(str(index), f"GPU {index}", device.info.name, device.info.total, device.history, spans)
        for index, device in sorted(state.devices.items())
    ]
    if state.cpu_pool:
        found.append(_place(CPU, "CPU pool", "", None, state.cpu_pool.history, spans))
    return found


def _place(key: str, name: str, model: str, total: int | None, history: History, spans: Sequence[RunSpan]) -> PagePlace:
    columns = _columns(history)
    layers = [_layers(key, t, sample, spans) for t, sample in columns]
    unused = {one for one in _FRAMEWORKS if not any(each.get(one) for each in layers)}
    keys = [one for one in LAYERS if one not in unused and (key != CPU or one in ("in_use", "cached"))]
    limits = [PageLimit(run=span.number, bytes=span.limits[key]) for span in spans if span.limits.get(key)]
    return PagePlace(
        key=key,
        name=name,
        model=model,
        total=total,
        times=[t for t, _ in columns],
        layers=[PageLayer(key=one, name=LAYERS[one], bytes=[each.get(one) for each in layers]) for one in keys],
        limits=limits,
    )


def _columns(history: History) -> list[tuple[float, Sample | None]]:
    """Return the beginning of each stretch of time and its highest figures, without stretches like the one before.

    The stretches of the last minutes are as short as the history has them: what ended a run is seen there.
    """
    end = history.end or 0.0
    width_s, fine_s = history.width_s(end), history.width_s(FINE_S)
    cut = max(0, int((end - FINE_S) / width_s))
    columns = [(place * width_s, sample) for place, sample in enumerate(history.read(end, width_s, 0, cut))]
    first = round(cut * width_s / fine_s)
    latest = history.read(end - cut * width_s, fine_s, first, int(end / fine_s) + 1)
    columns += [(place * fine_s, sample) for place, sample in enumerate(latest, first)]
    return columns[:1] + [now for before, now in pairwise(columns) if now[1] != before[1]]


def _layers(key: str, t: float, sample: Sample | None, spans: Sequence[RunSpan]) -> dict[str, int]:
    if sample is None:
        return {}
    if key == CPU:
        in_use, pool = sample
        return {"in_use": in_use, "cached": pool - in_use}
    in_use, pool, *others, own, used = sample
    pools_end = others[-1]
    frameworks = [upper - lower for lower, upper in pairwise((pool, *others))]
    known = next((span.contexts.get(int(key), 0) for span in spans if span.began <= t <= span.ended), 0)
    context = min(known, own - pools_end)
    return {
        "in_use": in_use,
        "cached": pool - in_use,
        "context": context,
        **dict(zip(_FRAMEWORKS, frameworks, strict=True)),
        "outside": own - pools_end - context,
        "others": used - own,
    }
