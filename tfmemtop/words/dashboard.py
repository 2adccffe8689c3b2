"""The text of the Grafana dashboard. Pure."""

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
_GPU = "{{host}} {{uuid}}"

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
    ("card", "in_use"): f"in use {_GPU}",
    ("card", "cached"): f"cached {_GPU}",
    ("card", "context"): f"context {_GPU}",
    ("card", "outside"): f"outside {_GPU}",
    ("card", "others"): f"other processes {_GPU}",
    ("card", "free"): f"free {_GPU}",
    ("busy", "kernels"): f"kernels {_GPU}",
    ("busy", "memory"): f"memory {_GPU}",
    ("power", "gpu"): _GPU,
    ("temperature", "gpu"): _GPU,
}
"""The names of the lines in a panel, by panel and line."""
