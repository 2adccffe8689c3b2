"""Reads the figures of whole cards from NVIDIA's library, through ``ctypes``: to import pynvml would take longer.

:class:`tfmemtop.engine.sources.nvml.Nvml` reads every kind of card, and gives the reason for each missing figure. This
module reads only the common kind; at any other it raises :class:`Strange`.
"""

from ctypes import CDLL, Structure, byref, c_char, c_uint, c_ulonglong, c_void_p, sizeof
from typing import Any, NamedTuple

_MEMORY_2 = 2 << 24
_CELSIUS_OF_GPU = 0
_TOO_SMALL = 7  # NVML_ERROR_INSUFFICIENT_SIZE
_MOST = 4096
_UNKNOWN = (1 << 64) - 1


class Card(NamedTuple):
    """A card's figures in bytes, percent, watts and degrees Celsius. ``processes`` maps PIDs to bytes."""

    number: int
    name: str
    total: int
    used: int
    free: int
    utilisation: int
    bandwidth: int
    power_w: float
    temperature_c: int
    processes: dict[int, int]


class Strange(Exception):
    """A card, a driver or a name is such that the first picture cannot show it."""


class _Memory(Structure):
    _fields_ = (
        ("version", c_uint),
        ("total", c_ulonglong),
        ("reserved", c_ulonglong),
        ("free", c_ulonglong),
        ("used", c_ulonglong),
    )


class _Rates(Structure):
    _fields_ = (("gpu", c_uint), ("memory", c_uint))


class _Process(Structure):
    _fields_ = (("pid", c_uint), ("used", c_ulonglong), ("instance", c_uint), ("compute_instance", c_uint))


def read_cards() -> list[Card]:
    """Return every card, in the driver's order.

    Raises:
        Strange: the library cannot be used, a card is divided, or one of its figures is missing or impossible.
    """
    try:
        library = CDLL("libnvidia-ml.so.1")
        _ask(library, "nvmlInit_v2")
        count = c_uint()
        _ask(library, "nvmlDeviceGetCount_v2", byref(count))
        return [_card(library, index) for index in range(count.value)]
    except (OSError, AttributeError) as error:
        raise Strange(str(error)) from None


def _ask(library: Any, function: str, *arguments: Any) -> None:
    code = getattr(library, function)(*arguments)
    if code:
        raise Strange(f"{function}: {code}")


def _card(library: Any, index: int) -> Card:
    handle = c_void_p()
    _ask(library, "nvmlDeviceGetHandleByIndex_v2", c_uint(index), byref(handle))
    present, pending = c_uint(), c_uint()
    if not library.nvmlDeviceGetMigMode(handle, byref(present), byref(pending)) and present.value:
        raise Strange("divided")
    name = (c_char * 96)()
    _ask(library, "nvmlDeviceGetName", handle, name, c_uint(len(name)))
    memory = _Memory(version=sizeof(_Memory) | _MEMORY_2)
    _ask(library, "nvmlDeviceGetMemoryInfo_v2", handle, byref(memory))
    # In the order in which the engine reads too: figures that change fast come first.
    lists = [_listed(library, kind, handle) for kind in ("Compute", "Graphics")]
    rates, power, degrees = _Rates(), c_uint(), c_uint()
    _ask(library, "nvmlDeviceGetUtilizationRates", handle, byref(rates))
    _ask(library, "nvmlDeviceGetPowerUsage", handle, byref(power))
    _ask(library, "nvmlDeviceGetTemperature", handle, c_uint(_CELSIUS_OF_GPU), byref(degrees))
    if not 0 < memory.used + memory.free <= memory.total or max(rates.gpu, rates.memory) > 100 or degrees.value > 300:
        raise Strange("figures that cannot be")
    # A process that both computes and draws is in both lists, with the same memory.
    processes = {pid: max(one.get(pid, 0) for one in lists) for one in lists for pid in one}
    return Card(
        number=index,
        name=name.value.decode(errors="replace"),
        total=memory.total,
        used=memory.used,
        free=memory.free,
        utilisation=rates.gpu,
        bandwidth=rates.memory,
        power_w=power.value / 1000,
        temperature_c=degrees.value,
        processes=processes,
    )


def _listed(library: Any, kind: str, handle: c_void_p) -> dict[int, int]:
    """Return the bytes that each process holds on a card, by PID. *kind* names the driver's list to read."""
    function = getattr(library, f"nvmlDeviceGet{kind}RunningProcesses_v3")
    code, room = _TOO_SMALL, 64
    while code == _TOO_SMALL and room <= _MOST:
        rows, count = (_Process * room)(), c_uint(room)
        code = function(handle, byref(count), rows)
        room *= 4
    if code or any(row.used == _UNKNOWN for row in rows[: count.value]):
        raise Strange("the memory of processes is not told")
    held: dict[int, int] = {}
    for row in rows[: count.value]:
        held[row.pid] = held.get(row.pid, 0) + row.used
    return held
