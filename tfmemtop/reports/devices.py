"""The text about GPUs and the CPU pool: their names, how busy they are, and why some of their figures are missing."""

from tfmemtop import events
from tfmemtop.state.views import DevicePanel, HostMemory
from tfmemtop.units import format_bytes


def title(panel: DevicePanel) -> str:
    """Return the title of a panel: ``GPU 0 NVIDIA H200``, ``CPU pool``."""
    gpu = panel.gpu
    if gpu is None:
        return "CPU pool" + (", as it was when its process ended" if panel.ended else "")
    return f"GPU {gpu.index} {gpu.name}" + (" MIG" if gpu.mig and "MIG" not in gpu.name else "")


def activity(panel: DevicePanel) -> tuple[str, ...]:
    """Return how busy a GPU is: ``util 45%``, ``mem 22%``, ``269 W``, ``42 °C``; for the CPU pool, the host."""
    if panel.host is not None:
        busy = () if panel.host.cpu is None else (f"host CPU {panel.host.cpu:.0f}%",)
        return busy + _limited_use(panel.host)
    return () if panel.reading is None else _gpu_activity(panel.reading)


def _gpu_activity(reading: events.DeviceReading) -> tuple[str, ...]:
    figures = (
        None if reading.utilisation is None else f"util {reading.utilisation}%",
        None if reading.bandwidth is None else f"mem {reading.bandwidth}%",
        None if reading.power_w is None else f"{reading.power_w:.0f} W",
        None if reading.temperature_c is None else f"{reading.temperature_c} °C",
    )
    return (*(figure for figure in figures if figure), *reading.further)


def note(panel: DevicePanel) -> str:
    """Return why figures of a GPU are missing; empty where none is."""
    if panel.gpu is None:
        return ""
    return "; ".join(notes(panel.reading)) if panel.reading else "no reading yet"


def notes(reading: events.DeviceReading) -> list[str]:
    """Return why figures of a GPU are missing, and which of them are the host's or of processes outside a container."""
    missing = reading.processes_missing
    found = [missing.text if missing else None]
    found += ["this GPU has no memory of its own: used and free are the host's"] if reading.of_host else []
    found += map(_lacking, reading.lacking)
    if reading.outside is not None:
        found.insert(1, f"processes outside this container hold {format_bytes(reading.outside)}")
    return [text for text in found if text]


_NAMED = 4


def _lacking(lacking: events.Lacking) -> str:
    more = len(lacking.figures) - _NAMED
    names = ", ".join(lacking.figures[:_NAMED]) + (f" and {more} more" if more > 0 else "")
    return lacking.why.text.format(names)


def _limited_use(host: HostMemory) -> tuple[str, ...]:
    """Return the use of host memory that is limited: ``3.0 of the container's 16.0 GiB``; empty if it is not."""
    whole = host.limited
    if whole is None:
        return ()
    return (f"{format_bytes(host.used).removesuffix(' ' + whole.rpartition(' ')[2])} of {whole}",)
