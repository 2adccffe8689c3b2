"""Reads the GPUs from NVIDIA's management library (NVML). Only this module imports ``pynvml``.

A figure that cannot be known is ``None``, and the reading reports why. An error is a notice to the user, or the reason
why a figure is missing. A divided card is reported as its slices, one device each: a process can use one of them, never
the whole.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from tfmemtop.engine.sources.nvml_calls import (
    LARGEST_MEMORY,
    LARGEST_PID,
    LARGEST_POWER_MW,
    NO_DRIVER,
    NO_GPU,
    NOT_AVAILABLE,
    TEMPERATURES_C,
    NvmlCalls,
    TrafficMeter,
    lost,
    no_shares,
    trouble,
    unopened,
)
from tfmemtop.engine.sources.processes import available_memory, machine_memory
from tfmemtop.events import Device, DeviceProcess, DeviceReading, Notice, SharesMissing, Traffic
from tfmemtop.units import MIB

_MOST_CARDS, _MOST_PROCESSES = 1024, 65_536
_DRIVER_FILES = ("/dev/nvidiactl", "/proc/driver/nvidia", "/dev/dxg")  # the last is WSL's
_CODERS = ("Encoder", "Decoder")
_UNEXPLAINED = 256 * MIB  # bytes that may be in use although the driver lists no process


class NvmlReading(NamedTuple):
    """All GPUs at one moment."""

    devices: list[Device]  # those not reported before
    readings: list[DeviceReading]
    troubles: list[Notice]


class _Memory(NamedTuple):
    total: int | None
    reserved: int | None
    used: int | None
    free: int | None
    unified: bool = False


class _Card(NamedTuple):
    """A GPU, or a slice of one. Of a slice, ``whole`` is the handle of its GPU."""

    handle: Any
    whole: Any = None
    instance: int | None = None  # the slice's number, as in the lists of the whole GPU's processes


class Nvml:
    """The library. The first reading opens it. After a failure it is opened again, every ``RETRY_S`` seconds at most.

    *library* is ``pynvml``, or an object that behaves like it. *host_memory* returns the host's bytes in total, and
    those that are available. A call may take any time in the driver, so use this object in a thread of its own.
    """

    RETRY_S = 60.0

    def __init__(
        self, library: Any = None, host_memory: Callable[[], tuple[int, int]] | None = None, wsl: bool | None = None
    ) -> None:
        self._library = library
        self._host_memory = host_memory or _host_memory
        self._wsl = _is_wsl() if wsl is None else wsl
        self._cards: list[tuple[_Card, Device]] | None = None
        self._told: set[str] = set()
        self._retry_at = 0.0
        self._sampled: dict[int, int] = {}  # a device's newest utilisation sample, µs of the driver's clock
        self._meters: dict[int, TrafficMeter] = {}  # by a whole card's index
        self._v2_missing = False

    def read(self, t: float = 0.0) -> NvmlReading:
        """Read every GPU. *t* is the time in session seconds, 0 if there is no session.

        Failures are not raised but returned among the troubles.
        """
        if self._cards is None:
            if time.monotonic() < self._retry_at:
                return NvmlReading([], [], [])
            if (closed := self._open(t)) is not None:
                self._retry_at = time.monotonic() + self.RETRY_S
                return NvmlReading([], [], [closed])
        troubles = [trouble("nvml")]
        readings = []
        cards = self._cards or []
        for card, device in cards:
            reading, told = self._read_device(device, card, t)
            readings.append(reading)
            troubles.append(told)
        new = [device for _, device in cards if device.uuid not in self._told]
        self._told.update(device.uuid for device in new)
        return NvmlReading(new, readings, troubles)

    def traffic(self) -> dict[int, Traffic]:
        """Return the traffic of each GPU since it was last read, by its index. Nothing else is read."""
        found = {index: meter.read() for index, meter in self._meters.items()}
        return {index: traffic for index, traffic in found.items() if traffic is not None}

    def close(self) -> None:
        """Close the library. The next reading opens it again."""
        if self._cards is not None:
            for meter in self._meters.values():
                meter.close()
            NvmlCalls(self._library).ask("", "nvmlShutdown")
            self._cards, self._meters = None, {}

    def driver_version(self) -> str | None:
        """Return the driver's version; ``None`` if the library is not open or does not report it."""
        return None if self._cards is None else _text(NvmlCalls(self._library).ask("", "nvmlSystemGetDriverVersion"))

    def _open(self, t: float) -> Notice | None:
        if self._library is None:
            if not any(Path(path).exists() for path in _DRIVER_FILES):
                return NO_DRIVER
            import pynvml

            self._library = pynvml
        library = self._library
        try:
            library.nvmlInit()
            count = NvmlCalls(library).figure("", library.nvmlDeviceGetCount(), _MOST_CARDS) or 0
            wholes = [library.nvmlDeviceGetHandleByIndex(i) for i in range(count)]
        except library.NVMLError as error:
            return unopened(library, error)
        if not wholes:
            NvmlCalls(library).ask("", "nvmlShutdown")  # when it is opened again, it lists the GPUs anew
            return NO_GPU
        cards = [card for whole in wholes for card in self._parts(whole)]
        self._cards = [(card, self._name(index, card, t)) for index, card in enumerate(cards)]
        ask = partial(NvmlCalls(library).ask, "")
        self._meters = {
            index: TrafficMeter(library, ask, card.handle) for index, card in enumerate(cards) if card.whole is None
        }
        return None

    def _parts(self, whole: Any) -> Iterator[_Card]:
        """Yield the slices of a divided card that are visible here, or the whole card if there are none."""
        ask = NvmlCalls(self._library).ask
        mode = ask("", "nvmlDeviceGetMigMode", whole)
        most = ask("", "nvmlDeviceGetMaxMigDeviceCount", whole) if mode and mode[0] else None
        handles = [ask("", "nvmlDeviceGetMigDeviceHandleByIndex", whole, i) for i in range(min(most or 0, 64))]
        slices = [
            _Card(handle, whole, ask("", "nvmlDeviceGetGpuInstanceId", handle))
            for handle in handles
            if handle is not None
        ]
        yield from slices or [_Card(whole)]

    def _name(self, index: int, card: _Card, t: float) -> Device:
        questions = NvmlCalls(self._library)
        memory = self._memory(card.handle, questions)
        mode = None if card.whole is not None else questions.ask("", "nvmlDeviceGetMigMode", card.handle)
        return Device(
            t=t,
            index=index,
            uuid=_text(questions.ask("", "nvmlDeviceGetUUID", card.handle)) or f"GPU {index}",
            name=_text(questions.ask("", "nvmlDeviceGetName", card.handle)) or "unnamed GPU",
            total=memory.total,
            reserved=memory.reserved,
            mig=card.whole is not None or bool(mode and mode[0]),
            unified=memory.unified,
        )

    def _read_device(self, device: Device, card: _Card, t: float) -> tuple[DeviceReading, Notice]:
        questions = NvmlCalls(self._library)
        ask, figure = questions.ask, questions.figure
        # First the figures that change within milliseconds while a process starts to use the card.
        memory = self._memory(card.handle, questions)
        processes, missing = self._processes(device, card, memory, questions.figure)
        rates = ask("utilisation", "nvmlDeviceGetUtilizationRates", card.handle)
        power = ask("power", "nvmlDeviceGetPowerUsage", card.handle)
        sensor = self._library.NVML_TEMPERATURE_GPU
        temperature = ask("temperature", "nvmlDeviceGetTemperature", card.whole or card.handle, sensor)
        # Many cards have no fan and no encoder, which is no failure: these are not listed among the missing figures.
        beside = NvmlCalls(self._library)
        speed = beside.ask("", "nvmlDeviceGetFanSpeed", card.whole or card.handle)
        fan = figure("fan", speed, 200)  # a fan may be faster than its nominal highest speed
        encoder, decoder = (beside.ask("", f"nvmlDeviceGet{kind}Utilization", card.handle) for kind in _CODERS)
        power_mw = figure("power (mW)", power, LARGEST_POWER_MW)
        reading = DeviceReading(
            t=t,
            index=device.index,
            used=memory.used,
            free=memory.free,
            utilisation=figure("utilisation", rates.gpu, 100) if rates else None,
            bandwidth=figure("bandwidth", rates.memory, 100) if rates else None,
            power_w=None if power_mw is None else power_mw / 1000,
            temperature_c=figure("temperature", temperature, *TEMPERATURES_C[::-1]),
            processes=processes,
            processes_missing=missing,
            lacking=questions.lacking(part=card.whole is not None, unified=memory.unified),
            of_host=memory.unified,
            fan=fan,
            encoder=figure("encoder", encoder[0], 100) if encoder else None,
            decoder=figure("decoder", decoder[0], 100) if decoder else None,
            traffic=self._meters[device.index].read() if device.index in self._meters else None,
        )
        gone = (self._library.NVML_ERROR_GPU_IS_LOST, self._library.NVML_ERROR_UNKNOWN)
        if questions.codes.get("memory") in gone:
            return reading, lost(device.index)
        return reading, trouble(f"gpu{device.index}")

    def _memory(self, handle: Any, questions: NvmlCalls) -> _Memory:
        library = self._library
        info = None
        if not self._v2_missing:
            # Version 2 reports what the driver keeps for itself separately from what is in use.
            version = library.nvmlMemory_v2
            info = questions.ask("memory", "nvmlDeviceGetMemoryInfo", handle, version=version)
            self._v2_missing = questions.codes.get("memory") in (
                library.NVML_ERROR_FUNCTION_NOT_FOUND,
                library.NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
            )
        reserved = getattr(info, "reserved", None)
        if info is None:
            info = questions.ask("memory", "nvmlDeviceGetMemoryInfo", handle)
        # Cards that share the host's memory refuse the call, or report a total of 0.
        if questions.codes.get("memory") == library.NVML_ERROR_NOT_SUPPORTED or (info and info.total == 0):
            whole, left = self._host_memory()
            return _Memory(whole, None, max(0, whole - left), left, unified=True)
        if info is None:
            return _Memory(None, None, None, None)
        figure = questions.figure
        total = figure("total", info.total, LARGEST_MEMORY, 1)
        most = LARGEST_MEMORY if total is None else total
        used, free = figure("used", info.used, most), figure("free", info.free, most)
        if used is not None and free is not None and used + free > most:
            free = figure("free", info.free, most - used)
        return _Memory(total, figure("reserved", reserved, most), used, free)

    def _processes(
        self, device: Device, card: _Card, memory: _Memory, figure: Callable[..., int | None]
    ) -> tuple[list[DeviceProcess], SharesMissing | None]:
        library, questions = self._library, NvmlCalls(self._library)
        lists = [self._listed(card, kind, questions) for kind in ("Compute", "Graphics")]

        def why_missing() -> SharesMissing:
            mode = questions.ask("vgpu", "nvmlDeviceGetVirtualizationMode", card.handle)
            guest = getattr(library, "NVML_GPU_VIRTUALIZATION_MODE_VGPU", None)
            code = questions.codes.get("Compute")
            return no_shares(library, code, mig=device.mig, wsl=self._wsl, vgpu=mode is not None and mode == guest)

        if lists == [None, None]:
            return [], why_missing()
        most = LARGEST_MEMORY if device.total is None else device.total
        # A process that computes and draws has the same memory in both lists. A MIG device lists a
        # process once for each of its instances.
        held: dict[int, int | None] = {}
        for listed in lists:
            share: dict[int, int | None] = {}
            for row in (listed or ())[:_MOST_PROCESSES]:
                if figure("process number", row.pid, LARGEST_PID, 1) is None:
                    continue
                known, told = share.get(row.pid), row.usedGpuMemory
                size = None if told == NOT_AVAILABLE else figure(f"process {row.pid}", told, most)
                share[row.pid] = known if size is None else size + (known or 0)
            for pid, amount in share.items():
                before = held.get(pid)
                held[pid] = before if amount is None else max(amount, before or 0)
        load = self._load(device.index, card.handle)
        # A sample with a number that is not listed may be of a listed process, with its number in another namespace.
        idle = (0, 0) if load is not None and load.keys() <= held.keys() else (None, None)
        rows = []
        for pid, amount in held.items():
            sm, bandwidth = (None, None) if load is None else load.get(pid, idle)
            rows.append(DeviceProcess(pid=pid, used=amount, sm=sm, bandwidth=bandwidth))
        rows.sort(key=lambda row: (-(row.used or 0), row.pid))
        if rows and all(row.used is None for row in rows):
            return rows, why_missing()
        if not rows and (memory.used or 0) > _UNEXPLAINED and not memory.unified:
            reason = why_missing()
            return rows, SharesMissing.NAMES_NONE if reason is SharesMissing.NOT_TOLD else reason
        return rows, None

    def _listed(self, card: _Card, kind: str, questions: NvmlCalls) -> Any:
        """Return the processes on a card, or on a slice; ``None`` if the driver does not report them."""
        functions = [f"nvmlDeviceGet{kind}RunningProcesses{version}" for version in ("_v3", "_v2", "")]
        rows = questions.first(kind, functions, card.handle)
        if rows is None and card.whole is not None and card.instance is not None:
            rows = questions.first(kind, functions, card.whole)
            if rows is not None:
                rows = [row for row in rows if getattr(row, "gpuInstanceId", None) == card.instance]
        return rows

    def _load(self, index: int, handle: Any) -> dict[int, tuple[int, int]] | None:
        """Return SM and bandwidth percent by process since the last reading; ``None`` if they are not available."""
        library, questions = self._library, NvmlCalls(self._library)
        samples = questions.ask("", "nvmlDeviceGetProcessUtilization", handle, self._sampled.get(index, 0))
        if samples is None:
            # Without a sample since the last reading, all processes were idle.
            return {} if questions.codes[""] in (library.NVML_ERROR_NOT_FOUND, library.NVML_SUCCESS) else None
        newest: dict[int, Any] = {}
        for sample in samples:
            if sample.timeStamp and sample.timeStamp >= getattr(newest.get(sample.pid), "timeStamp", 0):
                newest[sample.pid] = sample
        self._sampled[index] = max([s.timeStamp for s in newest.values()], default=self._sampled.get(index, 0))
        return {pid: (min(max(s.smUtil, 0), 100), min(max(s.memUtil, 0), 100)) for pid, s in newest.items()}


def _text(raw: str | bytes | None) -> str | None:
    return raw.decode(errors="replace") if isinstance(raw, bytes) else raw


def _host_memory() -> tuple[int, int]:
    """Return the machine's memory and the available part of it, in bytes."""
    return machine_memory(), available_memory()


def _is_wsl() -> bool:
    """Return whether this is the Windows Subsystem for Linux."""
    try:
        return "microsoft" in Path("/proc/version").read_text(errors="replace").lower()
    except OSError:
        return False
