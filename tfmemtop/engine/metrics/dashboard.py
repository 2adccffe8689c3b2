"""The Grafana dashboard: which queries it draws, and how. Its texts are in ``words/dashboard.py``."""

import json
from dataclasses import dataclass
from typing import Any

TITLE = "tfmemtop: GPU memory of TensorFlow programs"

TEXTS: dict[str, tuple[str, str]] = {
    "datasource": ("Prometheus", ""),
    "running": ("Runs", "Runs that go on now."),
    "out_of_memory": ("Out of memory", "Allocations that failed for good, in the runs that are shown."),
    "fullest": ("Fullest pool", "The highest memory in use of any pool, as a share of its limit."),
    "findings": ("Findings", "Errors and warnings that hold now. tfmemtop help findings explains them."),
    "steps": ("Steps a second", "Steps of each run."),
    "in_use": (
        "In use",
        "Memory in use in TensorFlow's pools. The highest is of the time since the previous scrape: short spikes show.",
    ),
    "pool": ("Pools", "What TensorFlow's allocators have taken, their peak in use, and the largest free chunk."),
    "card": ("GPU memory", "Who holds each GPU's memory. The parts add up to what the GPU has."),
    "busy": ("Utilisation", "Share of the time in which a kernel ran, and in which memory was read or written."),
    "power": ("Power", "Power that each GPU draws."),
    "temperature": ("Temperature", "Temperature of each GPU."),
    "runs": (
        "Runs and their settings",
        "Every run that is scraped; running is 1 while it goes on, and 0 once it has ended.",
    ),
}
"""Title and description of each panel."""

_POOL = "{{host}} {{rank}} {{device}}"
_BY_GPU = "{{host}} {{uuid}}"

LEGENDS: dict[tuple[str, str], str] = {
    ("running", "runs"): "runs",
    ("out_of_memory", "errors"): "errors",
    ("fullest", "share"): "share",
    ("steps", "pool"): "{{host}} {{rank}}",
    ("in_use", "highest"): f"highest {_POOL}",
    ("in_use", "now"): f"now {_POOL}",
    ("in_use", "limit"): f"limit {_POOL}",
    ("pool", "taken"): f"pool {_POOL}",
    ("pool", "peak"): f"peak in use {_POOL}",
    ("pool", "free_piece"): f"largest free {_POOL}",
    ("card", "in_use"): f"in use {_BY_GPU}",
    ("card", "cached"): f"cached {_BY_GPU}",
    ("card", "context"): f"context {_BY_GPU}",
    ("card", "outside"): f"outside {_BY_GPU}",
    ("card", "others"): f"other processes {_BY_GPU}",
    ("card", "free"): f"free {_BY_GPU}",
    ("busy", "kernels"): f"kernels {_BY_GPU}",
    ("busy", "memory"): f"memory {_BY_GPU}",
    ("power", "gpu"): _BY_GPU,
    ("temperature", "gpu"): _BY_GPU,
}
"""The names of the lines in a panel, by panel and line."""


_WIDTH = 24  # the width of a dashboard, in Grafana's columns
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_WHERE = 'host=~"$host",job=~"$job",rank=~"$rank"'
_GPU = f'{_WHERE},uuid!=""'


@dataclass(frozen=True)
class _Panel:
    """A panel: its ``queries`` by the name of their legend. ``key`` identifies the panel's texts.

    ``value`` is the heading of a table's values; without it, the table has only their labels.
    """

    key: str
    kind: str
    unit: str
    width: int
    height: int
    queries: dict[str, str]
    stacked: bool = False
    instant: bool = False
    value: str = ""


def _used_by_others() -> str:
    """Return a query for the bytes on each GPU that processes use which belong to no run. Without a run that is all."""
    used = f"max by (host, uuid) (tfmemtop_device_memory_used_bytes{{{_GPU}}})"
    runs = "sum by (host, uuid) (tfmemtop_process_total_bytes)"
    return f"{used} - on (host, uuid) ({runs} or on (host, uuid) {used} * 0)"


PANELS = (
    _Panel("running", "stat", "none", 4, 8, {"runs": f"sum(tfmemtop_running{{{_WHERE}}}) or vector(0)"}),
    _Panel(
        "out_of_memory",
        "stat",
        "none",
        4,
        8,
        {"errors": f"sum(tfmemtop_out_of_memory_total{{{_WHERE}}}) or vector(0)"},
    ),
    _Panel(
        "fullest",
        "stat",
        "percentunit",
        4,
        8,
        {"share": f"max(tfmemtop_in_use_high_bytes{{{_WHERE}}} / tfmemtop_limit_bytes{{{_WHERE}}})"},
    ),
    _Panel(
        "findings",
        "table",
        "none",
        12,
        8,
        {
            "finding": (
                "max by (severity, key, host, job, rank, device) "
                f'(tfmemtop_finding{{{_WHERE},severity=~"error|warning"}})'
            )
        },
        instant=True,
    ),
    _Panel(
        "in_use",
        "timeseries",
        "bytes",
        12,
        9,
        {
            "highest": f"tfmemtop_in_use_high_bytes{{{_WHERE}}}",
            "now": f"tfmemtop_in_use_bytes{{{_WHERE}}}",
            "limit": f"tfmemtop_limit_bytes{{{_WHERE}}}",
        },
    ),
    _Panel("steps", "timeseries", "none", 12, 9, {"pool": f"rate(tfmemtop_steps_total{{{_WHERE}}}[$__rate_interval])"}),
    _Panel(
        "card",
        "timeseries",
        "bytes",
        24,
        10,
        {
            "in_use": f"sum by (host, uuid) (tfmemtop_in_use_bytes{{{_GPU}}})",
            "cached": (
                f"sum by (host, uuid) (tfmemtop_pool_bytes{{{_GPU}}})"
                f" - sum by (host, uuid) (tfmemtop_in_use_bytes{{{_GPU}}})"
            ),
            "context": f"sum by (host, uuid) (tfmemtop_context_bytes{{{_GPU}}})",
            "outside": f"sum by (host, uuid) (tfmemtop_outside_bytes{{{_GPU}}})",
            "others": _used_by_others(),
            "free": f"max by (host, uuid) (tfmemtop_device_memory_free_bytes{{{_GPU}}})",
        },
        stacked=True,
    ),
    _Panel(
        "pool",
        "timeseries",
        "bytes",
        12,
        9,
        {
            "taken": f"tfmemtop_pool_bytes{{{_WHERE}}}",
            "peak": f"tfmemtop_peak_bytes{{{_WHERE}}}",
            "free_piece": f"tfmemtop_largest_free_bytes{{{_WHERE}}}",
        },
    ),
    _Panel(
        "busy",
        "timeseries",
        "percentunit",
        12,
        9,
        {
            "kernels": f"max by (host, uuid) (tfmemtop_device_utilization_ratio{{{_GPU}}})",
            "memory": f"max by (host, uuid) (tfmemtop_device_memory_bandwidth_ratio{{{_GPU}}})",
        },
    ),
    _Panel(
        "power",
        "timeseries",
        "watt",
        12,
        7,
        {"gpu": f"max by (host, uuid) (tfmemtop_device_power_watts{{{_GPU}}})"},
    ),
    _Panel(
        "temperature",
        "timeseries",
        "celsius",
        12,
        7,
        {"gpu": f"max by (host, uuid) (tfmemtop_device_temperature_celsius{{{_GPU}}})"},
    ),
    _Panel(
        "runs",
        "table",
        "none",
        24,
        8,
        {"run": f"tfmemtop_run_info{{{_WHERE}}} * on (instance, run) group_left tfmemtop_running"},
        instant=True,
        value="running",
    ),
)


def queries() -> list[str]:
    """Return all queries of the dashboard, with Grafana's variables in them."""
    return [query for panel in PANELS for query in panel.queries.values()]


def dashboard() -> str:
    """Return the dashboard as JSON, for Grafana's import."""
    return json.dumps(
        {
            "title": TITLE,
            "uid": "tfmemtop",
            "tags": ["tfmemtop"],
            "schemaVersion": 39,
            "editable": True,
            "refresh": "15s",
            "time": {"from": "now-1h", "to": "now"},
            "templating": {"list": [_source(), *(_variable(name) for name in ("job", "host", "rank"))]},
            "panels": list(_placed()),
        },
        indent=1,
    )


def _source() -> dict[str, Any]:
    return {"name": "datasource", "type": "datasource", "query": "prometheus", "label": TEXTS["datasource"][0]}


def _variable(label: str) -> dict[str, Any]:
    # A run without a job lacks the labels job and rank. `.*` matches a missing label, and `.+` does not.
    return {
        "name": label,
        "label": label,
        "type": "query",
        "datasource": _SOURCE,
        "query": f"label_values(tfmemtop_run_info, {label})",
        "definition": f"label_values(tfmemtop_run_info, {label})",
        "includeAll": True,
        "allValue": ".*",
        "multi": True,
        "refresh": 2,
        "sort": 3,
        "current": {"text": "All", "value": "$__all"},
    }


def _placed() -> list[dict[str, Any]]:
    """Return the panels in rows, from the left. A row is as high as its highest panel."""
    placed: list[dict[str, Any]] = []
    x = y = row = 0
    for number, panel in enumerate(PANELS, 1):
        if x + panel.width > _WIDTH:
            x, y, row = 0, y + row, 0
        placed.append(_panel(panel, number, x, y))
        x, row = x + panel.width, max(row, panel.height)
    return placed


def _panel(panel: _Panel, number: int, x: int, y: int) -> dict[str, Any]:
    title, description = TEXTS[panel.key]
    custom: dict[str, Any] = {}
    if panel.kind == "timeseries":
        custom = {"drawStyle": "line", "fillOpacity": 60 if panel.stacked else 8, "showPoints": "never"}
        if panel.stacked:
            custom["stacking"] = {"mode": "normal"}
    drawn: dict[str, Any] = {
        "id": number,
        "type": panel.kind,
        "title": title,
        "description": description,
        "datasource": _SOURCE,
        "gridPos": {"x": x, "y": y, "w": panel.width, "h": panel.height},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0, "custom": custom}, "overrides": []},
        "targets": [
            {
                "refId": chr(ord("A") + place),
                "datasource": _SOURCE,
                "expr": query,
                "legendFormat": LEGENDS.get((panel.key, name), "__auto"),
                **({"instant": True, "range": False, "format": "table"} if panel.instant else {}),
            }
            for place, (name, query) in enumerate(panel.queries.items())
        ],
    }
    if panel.kind == "table":
        hidden = {"Time": True, "__name__": True, "Value": not panel.value}
        named = {"Value": panel.value} if panel.value else {}
        drawn["transformations"] = [{"id": "organize", "options": {"excludeByName": hidden, "renameByName": named}}]
    return drawn
