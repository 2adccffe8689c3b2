"""The checks of this machine and terminal: driver, memory per process, sockets, host memory, terminal, locale."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from tfmemtop.charset import locale_name, takes_utf8
from tfmemtop.cli.checks.check import Check, Fact, missing, ok, unknown
from tfmemtop.engine.sources.cgroup import host_memory
from tfmemtop.engine.sources.nvml import Nvml, NvmlReading
from tfmemtop.engine.sources.processes import pid_namespace
from tfmemtop.engine.stream.folders import open_session
from tfmemtop.events import Level, NoticeKind
from tfmemtop.limits import HostOwner

_NVIDIA = "0x10de"  # NVIDIA's vendor id on the PCI bus
_DISPLAYS = ("0x0300", "0x0302")  # PCI classes: graphics cards with and without a display output


def read_driver(nvml: Nvml | None = None) -> tuple[NvmlReading, str | None]:
    """Return a reading of the GPUs, and the driver's version."""
    nvml = nvml or Nvml()
    reading = nvml.read()
    version = nvml.driver_version()
    nvml.close()
    return reading, version


def driver(reading: NvmlReading, version: str | None, root: Path = Path("/")) -> Check:
    """Check whether the driver answers, or the machine has no GPU."""
    trouble = next((each for each in reading.troubles if each.kind), None)
    if reading.devices and trouble is None:
        return ok("driver", Fact.GPUS_READ, version=version, names=[device.name for device in reading.devices])
    if trouble is None or trouble.kind is NoticeKind.NO_GPU:
        return missing("driver", Fact.NO_GPU_SHOWN)
    if trouble.level is Level.ERROR or _has_card(root):
        return missing("driver", Fact.DRIVER_TROUBLE, trouble=trouble)
    return ok("driver", Fact.NO_GPU)


def shares(reading: NvmlReading, root: Path = Path("/")) -> Check:
    """Check whether the driver reports GPU memory per process."""
    name = "processes"
    if not reading.devices:
        return ok(name, Fact.NO_GPU_TO_SHARE)
    reason = next((one.processes_missing for one in reading.readings if one.processes_missing), None)
    told = any(process.used is not None for one in reading.readings for process in one.processes)
    if pid_namespace(root) != "first" and not told:
        return unknown(name, Fact.PIDS_DIFFER, reason=reason)
    if reason:
        return missing(name, Fact.SHARES_MISSING, reason=reason, mig=any(each.mig for each in reading.devices))
    return ok(name, Fact.SHARES_TOLD if told else Fact.NO_PROCESS)


def sockets() -> Check:
    """Check whether a session can be made. It makes the folder, the lock and the sockets of one, and removes them."""
    try:
        session = open_session()
    except OSError as error:
        return missing("sockets", Fact.SOCKETS_FAILED, file=error.filename, error=error.strerror or error)
    folder = session.path.parent
    session.remove()
    return ok("sockets", Fact.SOCKETS, folder=folder)


def memory(root: Path = Path("/")) -> Check:
    """Return how much host memory a share such as ``50%`` refers to: the machine's, or a cgroup's limit."""
    found = host_memory(root)
    if found.owner is HostOwner.MACHINE:
        return ok("cgroup", Fact.MEMORY_WHOLE, machine=found.machine)
    return ok("cgroup", Fact.MEMORY_LIMITED, owner=found.owner, total=found.total, machine=found.machine)


def terminal(environment: Mapping[str, str], smallest: tuple[int, int]) -> Check:
    """Check whether the screen can be drawn. The terminal must have at least *smallest* columns and rows."""
    name, kind = "terminal", environment.get("TERM", "")
    stdout, stdin = sys.stdout, sys.stdin
    if stdout is None or stdin is None or not (stdout.isatty() and stdin.isatty()):
        return unknown(name, Fact.NOT_A_TERMINAL)
    if kind in ("", "dumb"):
        return missing(name, Fact.TERMINAL_KIND, kind=kind)
    columns, rows = os.get_terminal_size(stdout.fileno())
    size = {"columns": columns, "rows": rows, "kind": kind}
    if 0 < columns < smallest[0] or 0 < rows < smallest[1]:
        return missing(name, Fact.TERMINAL_SMALL, **size, least=smallest)
    return ok(name, Fact.TERMINAL, **size, colours=not environment.get("NO_COLOR"))


def locale(environment: Mapping[str, str]) -> Check:
    """Return which characters are drawn by the locale in *environment*: UTF-8 or ASCII only."""
    name = locale_name(environment)
    if not takes_utf8(environment):
        return ok("locale", Fact.LOCALE_ASCII, name=name)
    return ok("locale", Fact.LOCALE_UTF8, name=name) if name else ok("locale", Fact.LOCALE_UNSET)


def _has_card(root: Path) -> bool:
    """Return whether the machine has a graphics card by NVIDIA, even if no driver is loaded."""
    for folder in (root / "sys/bus/pci/devices").glob("*"):
        try:
            vendor, kind = ((folder / name).read_text().strip() for name in ("vendor", "class"))
        except OSError:
            continue
        if vendor == _NVIDIA and kind.startswith(_DISPLAYS):
            return True
    return False
