"""Makes the metrics for Prometheus, each with its help text and its samples, from the state. Pure."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from prometheus_client.metrics_core import Metric

from tfmemtop.engine.metrics import session_labels
from tfmemtop.events import DeviceReading
from tfmemtop.events.machine import is_pinned
from tfmemtop.findings.finding import DeviceFinding, Finding
from tfmemtop.findings.judgement import findings
from tfmemtop.findings.names import key_of
from tfmemtop.findings.rules.notices import Noticed
from tfmemtop.state import State
from tfmemtop.state.account import Account, accounts
from tfmemtop.state.figures import effective_settings
from tfmemtop.state.lookup import of_run
from tfmemtop.state.model import DeviceState, RunState
from tfmemtop.state.pool_views import AllocatorRow, allocators
from tfmemtop.state.steps import pace

PREFIX = "tfmemtop_"

_RECENT_S = 120.0
"""The highest use of a pool is that of the last so many seconds: longer than Prometheus waits between two scrapes."""

HELP = {
    "in_use_bytes": "Memory in use in the pool of TensorFlow, JAX, PyTorch, CuPy or RMM, by the newest reading.",
    "in_use_high_bytes": "Highest memory in use in the last two minutes.",
    "pool_bytes": "Memory that the allocator has taken for its pool.",
    "peak_bytes": "Highest memory in use since the process began, by the framework's own count.",
    "limit_bytes": "The pool's limit.",
    "largest_free_bytes": "Largest free piece of the pool, by the newest map of it.",
    "context_bytes": "CUDA context of the run's processes on the GPU.",
    "context_exact": "1 if the context was measured, 0 if it is the usual figure.",
    "outside_bytes": "Memory of the run's processes on the GPU that is neither context nor pool.",
    "process_total_bytes": "Memory that the run's processes hold on the GPU, by the driver.",
    "device_info": "The GPU's index and name.",
    "device_memory_total_bytes": "Memory of the GPU.",
    "device_memory_reserved_bytes": "Memory of the GPU that the driver keeps for itself.",
    "device_memory_used_bytes": "Memory of the GPU that all processes use, without what the driver keeps for itself.",
    "device_memory_free_bytes": "Free memory of the GPU.",
    "device_workload_bytes": "Memory of the GPU that the processes of a container, pod, job, notebook or unit hold.",
    "device_utilization_ratio": "Share of the time in which a kernel ran on the GPU.",
    "device_memory_bandwidth_ratio": "Share of the time in which the GPU's memory was read or written.",
    "device_power_watts": "Power that the GPU draws.",
    "device_temperature_celsius": "Temperature of the GPU.",
    "device_fan_ratio": "Speed of the GPU's fan, relative to its nominal highest speed.",
    "device_encoder_ratio": "Share of the time in which the GPU encoded video.",
    "device_decoder_ratio": "Share of the time in which the GPU decoded video.",
    "device_pcie_receive_bytes_per_second": "Traffic to the GPU over PCIe.",
    "device_pcie_transmit_bytes_per_second": "Traffic from the GPU over PCIe.",
    "device_nvlink_receive_bytes_per_second": "Traffic to the GPU over all its NVLinks.",
    "device_nvlink_transmit_bytes_per_second": "Traffic from the GPU over all its NVLinks.",
    "host_memory_peak_bytes": "The highest resident host memory of a process of the run, by readings once a second.",
    "running": "1 while the run goes on, 0 once it has ended.",
    "run_start_time_seconds": "When the run began, in seconds since 1970.",
    "steps_total": "Steps of the run: calls of its busiest tf.function, times the steps of one call where known.",
    "out_of_memory_total": "Allocations of the run that failed for good.",
    "finding": "How many findings of this kind hold now; tfmemtop help findings explains them.",
    "run_info": "The run: its user, versions and settings.",
}
"""The help texts of all metrics, by the name without the prefix that all names have."""


def families(state: State) -> list[Metric]:
    """Return all metrics that have a sample now."""
    common = session_labels(state.session)
    made = _Families(common)
    for device in state.devices.values():
        _card(made, device)
        _workloads(made, state, device)
    if run := state.run:
        made.common = common | {"run": str(run.run)}
        _pools(made, state)
        _parts(made, state)
        _run(made, state, run)
    _findings(made, state)
    return list(made.found.values())


class _Families:
    """Families by name. A family is made when its first sample is added."""

    def __init__(self, common: dict[str, str]) -> None:
        self.common = common
        self.found: dict[str, Metric] = {}

    def add(self, name: str, value: float | None, /, **labels: str) -> None:
        """Add a sample of the metric *name*, unless its *value* is ``None``. Labels that are empty are left out."""
        if value is None:
            return
        kind = "counter" if name.endswith("_total") else "gauge"
        family = self.found.setdefault(name, Metric(PREFIX + name.removesuffix("_total"), HELP[name], kind))
        # What is no text, such as a file's name in another encoding, cannot be sent.
        given = {
            label: text.encode(errors="replace").decode() for label, text in (self.common | labels).items() if text
        }
        family.add_sample(PREFIX + name, given, value)


def _pools(made: _Families, state: State) -> None:
    """Add the figures of the run's pools. Several processes may have an allocator each on the same GPU.

    A pool that is in an account has the sizes of the account's moment, so that they and the account's parts add up.
    """
    accounted = {
        (pid, pool.device): pool
        for pid in state.processes
        if of_run(state, pid)
        for account in accounts(state, pid)
        for pool in account.every_pool
    }

    def in_use(row: AllocatorRow) -> int | None:
        pool = accounted.get((row.pid, row.device))
        return row.in_use if pool is None else pool.in_use

    def size(row: AllocatorRow) -> int | None:
        pool = accounted.get((row.pid, row.device))
        return row.pool if pool is None else pool.pool

    places: dict[tuple[str, str], list[AllocatorRow]] = {}
    for row in allocators(state):
        if of_run(state, row.pid) and not is_pinned(row.device):
            places.setdefault((_uuid(state, row.gpu), row.device), []).append(row)
    for (uuid, device), all_rows in places.items():
        living = [row for row in all_rows if not row.ended]
        figures = {
            "in_use_bytes": _sum(living, in_use),
            "in_use_high_bytes": _sum(living, partial(_high, state)),
            "pool_bytes": _sum(living, size),
            "peak_bytes": max((row.peak for row in all_rows if row.peak is not None), default=None),
            "limit_bytes": _sum(living, lambda row: row.limit),
            "largest_free_bytes": _largest_free(state, living),
        }
        for name, figure in figures.items():
            made.add(name, figure, uuid=uuid, device=device)


def _high(state: State, row: AllocatorRow) -> int | None:
    hooked = state.processes[row.pid].hooked
    trend = hooked.trends.get(row.device) if hooked else None
    return trend.highest(state.now - _RECENT_S) if trend else None


def _sum(rows: list[AllocatorRow], figure: Callable[[AllocatorRow], int | None]) -> int | None:
    sizes = [figure(row) for row in rows]
    return sum(size for size in sizes if size is not None) if sizes and None not in sizes else None


def _largest_free(state: State, rows: list[AllocatorRow]) -> int | None:
    found = []
    for row in rows:
        hooked = state.processes[row.pid].hooked
        pool = hooked.pools.get(row.device) if hooked else None
        if pool and pool.map and not pool.map.is_missing:
            found.append(pool.map.largest_free)
    return max(found, default=None)


def _parts(made: _Families, state: State) -> None:
    """Add what the run's processes hold on each GPU, and its parts outside the pools.

    These parts and the pools add up to the total.
    """
    by_gpu: dict[int, list[Account]] = {}
    ending: set[int] = set()
    for pid, process in state.processes.items():
        if of_run(state, pid) and not process.gone:
            for account in accounts(state, pid):
                by_gpu.setdefault(account.gpu, []).append(account)
                if process.hooked and process.hooked.ended:
                    ending.add(account.gpu)  # its pools are gone, but the driver does not report that yet
    for index, found in sorted(by_gpu.items()):
        uuid = _uuid(state, index)
        made.add("process_total_bytes", _all(one.total for one in found), uuid=uuid)
        if index in ending:
            continue
        context = _all(one.context for one in found)
        made.add("context_bytes", context, uuid=uuid)
        if context is not None:
            made.add("context_exact", float(all(one.context_exact for one in found)), uuid=uuid)
        made.add("outside_bytes", _all(one.outside for one in found), uuid=uuid)


def _all(sizes: Iterable[int | None]) -> int | None:
    known = list(sizes)
    return None if None in known else sum(size for size in known if size is not None)


def _card(made: _Families, device: DeviceState) -> None:
    info, reading = device.info, device.reading
    made.add("device_info", 1, uuid=info.uuid, index=str(info.index), name=info.name)
    made.add("device_memory_total_bytes", info.total, uuid=info.uuid)
    made.add("device_memory_reserved_bytes", info.reserved, uuid=info.uuid)
    for name, value in _read(reading) if reading else ():
        made.add(name, value, uuid=info.uuid)


def _workloads(made: _Families, state: State, device: DeviceState) -> None:
    """Add what is held on a GPU by each container, job and so on, and, without a name, by processes of none."""
    sizes: dict[str, list[int | None]] = {}
    for pid, share in device.by_pid.items():
        process = state.processes.get(pid)
        workload = process.seen.workload if process else None
        sizes.setdefault(workload.short if workload else "", []).append(share.used)
    for name, of_name in sizes.items():
        made.add("device_workload_bytes", _all(of_name), uuid=device.info.uuid, workload=name)


def _read(reading: DeviceReading) -> Iterator[tuple[str, float | None]]:
    yield "device_memory_used_bytes", reading.used
    yield "device_memory_free_bytes", reading.free
    yield "device_utilization_ratio", _ratio(reading.utilisation)
    yield "device_memory_bandwidth_ratio", _ratio(reading.bandwidth)
    yield "device_power_watts", reading.power_w
    yield "device_temperature_celsius", reading.temperature_c
    yield "device_fan_ratio", _ratio(reading.fan)
    yield "device_encoder_ratio", _ratio(reading.encoder)
    yield "device_decoder_ratio", _ratio(reading.decoder)
    if (traffic := reading.traffic) is not None:
        yield "device_pcie_receive_bytes_per_second", traffic.pcie_in
        yield "device_pcie_transmit_bytes_per_second", traffic.pcie_out
        yield "device_nvlink_receive_bytes_per_second", traffic.nvlink_in
        yield "device_nvlink_transmit_bytes_per_second", traffic.nvlink_out


def _ratio(percent: int | None) -> float | None:
    return None if percent is None else percent / 100


def _run(made: _Families, state: State, run: RunState) -> None:
    made.add("running", float(run.going))
    if state.session:
        made.add("run_start_time_seconds", round(state.session.started + run.started, 3))
    steps = pace(run.steps, state.now) if run.steps else None
    made.add("steps_total", steps.count if steps else 0)
    made.add("out_of_memory_total", run.out_of_memory)
    peaks = [p.rss_peak for pid, p in state.processes.items() if p.rss_peak is not None and of_run(state, pid)]
    made.add("host_memory_peak_bytes", max(peaks, default=None))
    settings = effective_settings(run)
    hellos = [p.hooked.hello.tensorflow for pid, p in state.processes.items() if p.hooked and of_run(state, pid)]
    made.add(
        "run_info",
        1,
        user=state.session.user if state.session else "",
        version=state.session.version if state.session else "",
        tensorflow=next((version for version in hellos if version), ""),
        growth=",".join(sorted({True: "on", False: "off"}[growth] for growth in settings.growths)),
        allocator=",".join(settings.allocators),
    )


def _findings(made: _Families, state: State) -> None:
    counts: dict[tuple[str, str, str, str], int] = {}
    for finding in findings(state):
        place = finding.place if isinstance(finding, DeviceFinding) else None
        uuid, device = (_uuid(state, place.gpu), place.device or "") if place else ("", "")
        one = finding_key(finding), finding.severity.name.lower(), uuid, device
        counts[one] = counts.get(one, 0) + 1
    for (key, severity, uuid, device), count in counts.items():
        made.add("finding", count, key=key, severity=severity, uuid=uuid, device=device)


def finding_key(finding: Finding) -> str:
    """Return the name of the finding's kind, such as ``tight_limit``; for a notice, such as ``notice_gpu_lost``."""
    if isinstance(finding, Noticed):
        kind = finding.notice.kind
        return f"notice_{kind.value}" if kind else "notice"
    return key_of(type(finding))


def _uuid(state: State, index: int | None) -> str:
    device = None if index is None else state.devices.get(index)
    return device.info.uuid if device else ""
