"""The GPUs, as NVIDIA's management library sees them: the only place that imports ``pynvml``.

Every one of its calls can fail or answer N/A, in containers, under WSL, on MIG devices and on cards
that have lost their bus; what cannot be known is ``None``.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from tfmemtop.events import Device, DeviceProcess, DeviceReading

T = TypeVar("T")

_DRIVER_FILES = ("/dev/nvidiactl", "/proc/driver/nvidia", "/dev/dxg")  # the last is WSL's
_UNEXPLAINED = 256 * 1024 * 1024


class Trouble(NamedTuple):
    """Something the user should know; ``text`` is empty once it is over."""

    key: str
    level: str
    text: str
    remedy: str = ""


class Reading(NamedTuple):
    """All GPUs at one moment."""

    devices: list[Device]  # those not told before
    readings: list[DeviceReading]
    troubles: list[Trouble]


class Nvml:
    """The library, opened when first read and again, rarely, after it failed.

    *library* is ``pynvml``, or what behaves like it. Calls may take as long as the driver likes:
    use from a thread of its own.
    """

    RETRY_S = 60.0

    def __init__(self, library: Any = None) -> None:
        self._library = library
        self._handles: list[Any] | None = None
        self._names: list[Device] = []
        self._told: set[str] = set()
        self._retry_at = 0.0
        self._sampled: dict[int, int] = {}  # a device's newest utilisation sample, µs of the driver's clock
        self._v2_missing = False

    def read(self) -> Reading:
        """Read every GPU; what goes wrong is among the troubles."""
        if self._handles is None:
            if time.monotonic() < self._retry_at:
                return Reading([], [], [])
            trouble = self._open()
            if trouble is not None:
                self._retry_at = time.monotonic() + self.RETRY_S
                return Reading([], [], [trouble])
        troubles = [Trouble("nvml", "info", "")]
        readings = []
        for device, handle in zip(self._names, self._handles or (), strict=True):
            reading, trouble = self._read_device(device, handle)
            readings.append(reading)
            troubles.append(trouble)
        new = [device for device in self._names if device.uuid not in self._told]
        self._told.update(device.uuid for device in new)
        return Reading(new, readings, troubles)

    def close(self) -> None:
        """Let go of the library; the next reading opens it again."""
        if self._handles is not None:
            self._try(self._library.nvmlShutdown)
            self._handles = None

    def _open(self) -> Trouble | None:
        if self._library is None:
            if not any(Path(path).exists() for path in _DRIVER_FILES):
                return _NO_DRIVER
            import pynvml

            self._library = pynvml
        library = self._library
        try:
            library.nvmlInit()
            self._handles = [library.nvmlDeviceGetHandleByIndex(i) for i in range(library.nvmlDeviceGetCount())]
        except library.NVMLError as error:
            return self._explain(error)
        self._names = [self._name(index, handle) for index, handle in enumerate(self._handles)]
        return None

    def _explain(self, error: Exception) -> Trouble:
        library = self._library
        code = getattr(error, "value", None)
        if code in (library.NVML_ERROR_LIBRARY_NOT_FOUND, library.NVML_ERROR_DRIVER_NOT_LOADED):
            return _NO_DRIVER
        if code == library.NVML_ERROR_LIB_RM_VERSION_MISMATCH:
            return Trouble(
                "nvml",
                "error",
                "the NVIDIA driver's library does not fit the loaded kernel module: GPUs cannot be read",
                "the driver was updated while in use: restart the machine, or reload the nvidia modules",
            )
        if code == library.NVML_ERROR_NO_PERMISSION:
            return Trouble(
                "nvml", "error", "no permission to talk to the NVIDIA driver", "check who may open /dev/nvidiactl"
            )
        return Trouble("nvml", "error", f"the GPUs cannot be read: {error}", "see what nvidia-smi says")

    def _name(self, index: int, handle: Any) -> Device:
        library = self._library
        memory = self._memory(handle)
        mig = self._try(library.nvmlDeviceGetMigMode, handle)
        return Device(
            t=0.0,
            index=index,
            uuid=_text(self._try(library.nvmlDeviceGetUUID, handle)) or f"GPU {index}",
            name=_text(self._try(library.nvmlDeviceGetName, handle)) or "unnamed GPU",
            total=memory.total if memory else None,
            reserved=memory.reserved if memory else None,
            mig=bool(mig and mig[0]),
        )

    def _read_device(self, device: Device, handle: Any) -> tuple[DeviceReading, Trouble]:
        library = self._library
        # First what changes within milliseconds while a process starts to use the card.
        memory = self._memory(handle)
        used = memory.used if memory else None
        processes, missing = self._processes(device, handle, used)
        rates = self._try(library.nvmlDeviceGetUtilizationRates, handle)
        power = self._try(library.nvmlDeviceGetPowerUsage, handle)
        temperature = self._try(library.nvmlDeviceGetTemperature, handle, library.NVML_TEMPERATURE_GPU)
        reading = DeviceReading(
            t=0.0,
            index=device.index,
            used=used,
            free=memory.free if memory else None,
            utilisation=rates.gpu if rates else None,
            bandwidth=rates.memory if rates else None,
            power_w=power / 1000 if power is not None else None,
            temperature_c=temperature,
            processes=processes,
            processes_missing=missing,
        )
        key = f"gpu{device.index}"
        if memory is None and self._is_lost(handle):
            return reading, Trouble(
                key,
                "error",
                f"GPU {device.index} is lost: the driver no longer reaches it",
                "see the kernel's log for an Xid; it takes a reset of the card or a restart",
            )
        return reading, Trouble(key, "info", "")

    def _is_lost(self, handle: Any) -> bool:
        library = self._library
        try:
            library.nvmlDeviceGetMemoryInfo(handle)
        except library.NVMLError as error:
            return getattr(error, "value", None) in (library.NVML_ERROR_GPU_IS_LOST, library.NVML_ERROR_UNKNOWN)
        return False

    def _memory(self, handle: Any) -> "_Memory | None":
        library = self._library
        if not self._v2_missing:
            try:
                # Version 2 tells what the driver keeps for itself apart from what is used.
                info = library.nvmlDeviceGetMemoryInfo(handle, version=library.nvmlMemory_v2)
                return _Memory(info.total, info.reserved, info.used, info.free)
            except library.NVMLError as error:
                self._v2_missing = getattr(error, "value", None) in (
                    library.NVML_ERROR_FUNCTION_NOT_FOUND,
                    library.NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
                )
        info = self._try(library.nvmlDeviceGetMemoryInfo, handle)
        return _Memory(info.total, None, info.used, info.free) if info else None

    def _processes(self, device: Device, handle: Any, used: int | None) -> tuple[list[DeviceProcess], str | None]:
        lists = [
            self._first(handle, f"nvmlDeviceGet{kind}RunningProcesses_v3", f"nvmlDeviceGet{kind}RunningProcesses_v2")
            for kind in ("Compute", "Graphics")
        ]
        if lists == [None, None]:
            return [], _why_missing(device)
        # The same memory stands in both lists of a process that computes and draws; a MIG device
        # lists a process once for each of its instances.
        held: dict[int, int | None] = {}
        for listed in lists:
            share: dict[int, int | None] = {}
            for row in listed or ():
                known = share.get(row.pid)
                amount = row.usedGpuMemory
                share[row.pid] = known if amount is None else amount + (known or 0)
            for pid, amount in share.items():
                before = held.get(pid)
                held[pid] = before if amount is None else max(amount, before or 0)
        load = self._load(device.index, handle)
        rows = []
        for pid, amount in held.items():
            sm, bandwidth = (None, None) if load is None else load.get(pid, (0, 0))
            rows.append(DeviceProcess(pid=pid, used=amount, sm=sm, bandwidth=bandwidth))
        rows.sort(key=lambda row: (-(row.used or 0), row.pid))
        if rows and all(row.used is None for row in rows):
            return rows, _why_missing(device)
        if not rows and (used or 0) > _UNEXPLAINED:
            return rows, "the driver names no process for the memory in use: it belongs to some outside this container"
        return rows, None

    def _load(self, index: int, handle: Any) -> dict[int, tuple[int, int]] | None:
        """SM and bandwidth percent by process since the last reading; ``None`` if not to be had."""
        library = self._library
        try:
            samples = library.nvmlDeviceGetProcessUtilization(handle, self._sampled.get(index, 0))
        except library.NVMLError as error:
            # Nothing sampled since: all idle.
            nothing_new = (library.NVML_ERROR_NOT_FOUND, library.NVML_SUCCESS)
            return {} if getattr(error, "value", None) in nothing_new else None
        newest: dict[int, Any] = {}
        for sample in samples:
            if sample.timeStamp and sample.timeStamp >= getattr(newest.get(sample.pid), "timeStamp", 0):
                newest[sample.pid] = sample
        self._sampled[index] = max([s.timeStamp for s in newest.values()], default=self._sampled.get(index, 0))
        return {pid: (min(s.smUtil, 100), min(s.memUtil, 100)) for pid, s in newest.items()}

    def _first(self, handle: Any, newer: str, older: str) -> Any:
        """What the newer of two functions says if this driver has it; ``None`` if neither answers."""
        library = self._library
        try:
            return getattr(library, newer)(handle)
        except library.NVMLError as error:
            if getattr(error, "value", None) != library.NVML_ERROR_FUNCTION_NOT_FOUND:
                return None
        return self._try(getattr(library, older), handle)

    def _try(self, function: Callable[..., T], *arguments: Any) -> T | None:
        try:
            return function(*arguments)
        except self._library.NVMLError:
            return None


class _Memory(NamedTuple):
    total: int
    reserved: int | None
    used: int
    free: int


_NO_DRIVER = Trouble(
    "nvml",
    "info",
    "no NVIDIA driver here: no GPU is shown",
    "if there is one, install its driver; in a container, start it with --gpus all",
)


def list_gpus() -> list[Device]:
    """The GPUs now, in NVML's order; empty without a driver that answers."""
    nvml = Nvml()
    devices = nvml.read().devices
    nvml.close()
    return devices


def _text(raw: str | bytes | None) -> str | None:
    return raw.decode(errors="replace") if isinstance(raw, bytes) else raw


def _why_missing(device: Device) -> str:
    if device.mig:
        return "the card is divided (MIG), and the driver tells shares of processes only to root"
    try:
        version = Path("/proc/version").read_text().lower()
    except OSError:
        version = ""
    if "microsoft" in version:
        return "under WSL the driver does not tell memory by process"
    return "the driver does not tell memory by process here"
