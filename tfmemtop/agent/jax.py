"""Reads JAX: the statistics of the devices of the backends that it has initialised.

``jax.local_devices()`` would initialise them. The module has them in a table, and its clients and devices are public.
"""

from typing import Any

from .framework_reader import FrameworkReading, Reader

FIGURES = {
    "in_use": "bytes_in_use",
    "held": "pool_bytes",
    "peak": "peak_bytes_in_use",
    "limit": "bytes_limit",
}
"""The names of the figures in ``Device.memory_stats()``."""

_GPUS = ("cuda", "rocm", "gpu")
_WITHOUT_FIGURES = "UNIMPLEMENTED"  # the allocator `platform` has no statistics


def _initialised(xla_bridge: Any) -> bool:
    return any(name in _GPUS for name in list(xla_bridge._backends))


def _read(xla_bridge: Any) -> "list[FrameworkReading]":
    backends = xla_bridge._backends
    clients = [backends.get(name) for name in _GPUS]
    return [_figures(device) for client in clients if client is not None for device in client.local_devices()]


def _figures(device: Any) -> FrameworkReading:
    try:
        told = device.memory_stats() or {}
    except Exception as error:
        if _WITHOUT_FIGURES not in str(error):
            raise
        told = {}
    figures = {figure: told.get(name) for figure, name in FIGURES.items()}
    return FrameworkReading(device.local_hardware_id, **figures)


JAX = Reader(
    framework="jax",
    title="JAX",
    module="jax._src.xla_bridge",
    variables=(
        *("XLA_PYTHON_CLIENT_PREALLOCATE", "XLA_PYTHON_CLIENT_MEM_FRACTION", "XLA_CLIENT_MEM_FRACTION"),
        *("XLA_PYTHON_CLIENT_ALLOCATOR", "TF_FORCE_UNIFIED_MEMORY"),
    ),
    begins=_initialised,  # it imports more when it compiles
    read=_read,
)
