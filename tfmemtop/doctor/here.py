"""The checks of this place: driver, memory, sockets, compiler, terminal, locale."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from tfmemtop.charset import locale_name, takes_utf8
from tfmemtop.doctor.check import Check
from tfmemtop.engine.cgroup import host_memory
from tfmemtop.engine.folders import open_session
from tfmemtop.engine.nvml import Nvml, Reading
from tfmemtop.engine.place import pid_namespace
from tfmemtop.units import format_bytes

_NVIDIA = "0x10de"  # the vendor's number on the PCI bus
_DISPLAYS = ("0x0300", "0x0302")  # classes of graphics cards and of those without an output
_HOST_PIDS = "start the container with --pid=host"


def read_driver(nvml: Nvml | None = None) -> tuple[Reading, str | None]:
    """The GPUs now, and the driver's version."""
    nvml = nvml or Nvml()
    reading = nvml.read()
    version = nvml.driver_version()
    nvml.close()
    return reading, version


def driver(reading: Reading, version: str | None, root: Path = Path("/")) -> Check:
    """Whether the driver answers, or there is no GPU for it."""
    trouble = next((each for each in reading.troubles if each.text), None)
    if reading.devices and trouble is None:
        names = ", ".join(dict.fromkeys(device.name for device in reading.devices))
        count = "1 GPU" if len(reading.devices) == 1 else f"{len(reading.devices)} GPUs"
        return Check("driver", "ok", f"{version or 'version unknown'}, {count}: {names}")
    if trouble is not None and (trouble.level == "error" or _has_card(root)):
        return Check("driver", "missing", trouble.text, trouble.remedy)
    if trouble is None:
        return Check("driver", "missing", "the driver answers, and shows no GPU", "in a container: --gpus all")
    return Check("driver", "ok", "no NVIDIA GPU here; TensorFlow's pool on the CPU is shown")


def shares(reading: Reading, root: Path = Path("/")) -> Check:
    """Whether memory is known by process."""
    name = "processes"
    if not reading.devices:
        return Check(name, "ok", "no GPU whose memory could be told by process")
    reason = next((one.processes_missing for one in reading.readings if one.processes_missing), None)
    told = any(process.used is not None for one in reading.readings for process in one.processes)
    if pid_namespace(root) != "first" and not told:
        text = "processes are numbered otherwise here than on the machine; pools are known all the same"
        return Check(name, "unknown", f"{text}; {reason}" if reason else text, _HOST_PIDS)
    if reason:
        remedy = "run as root, or on a GPU that is not divided" if any(each.mig for each in reading.devices) else ""
        return Check(name, "missing", reason, remedy or "none: pools and what is in use of them are known all the same")
    return Check(name, "ok", "the driver tells memory by process" if told else "no process is on a GPU now")


def sockets() -> Check:
    """Whether a session can be made: its folder, its lock and its sockets are."""
    try:
        session = open_session()
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        why = f"{where}{error.strerror or error}"
        return Check("sockets", "missing", why, "set XDG_RUNTIME_DIR to a folder with room")
    folder = session.path.parent
    session.remove()
    return Check("sockets", "ok", f"in {folder}")


def memory(root: Path = Path("/")) -> Check:
    """What host memory shares are shares of."""
    found = host_memory(root)
    if found.owner == "machine":
        return Check("cgroup", "ok", f"no limit below the machine's {format_bytes(found.machine)}")
    owner = "control group" if found.owner == "cgroup" else found.owner
    text = f"the {owner} may have {format_bytes(found.total)} of the machine's {format_bytes(found.machine)}"
    return Check("cgroup", "ok", text)


def terminal(environment: Mapping[str, str], smallest: tuple[int, int]) -> Check:
    """Whether the screen can be drawn, on a terminal of at least *smallest* columns and rows."""
    name, kind = "terminal", environment.get("TERM", "")
    stdout, stdin = sys.stdout, sys.stdin
    if stdout is None or stdin is None or not (stdout.isatty() and stdin.isatty()):
        return Check(name, "unknown", "standard input or output is no terminal", "record and --once need none")
    if kind in ("", "dumb"):
        return Check(name, "missing", f"TERM={kind}: it cannot be drawn on", "set TERM, such as xterm-256color")
    columns, rows = os.get_terminal_size(stdout.fileno())
    size = f"{columns} by {rows}, {kind}"
    if 0 < columns < smallest[0] or 0 < rows < smallest[1]:
        return Check(name, "missing", size, f"make it {smallest[0]} by {smallest[1]} or larger")
    colours = "no colours, as NO_COLOR asks" if environment.get("NO_COLOR") else "16 colours of its own"
    return Check(name, "ok", f"{size}, {colours}")


def locale(environment: Mapping[str, str]) -> Check:
    """Which characters are drawn."""
    name = locale_name(environment)
    if not takes_utf8(environment):
        return Check("locale", "ok", f"{name}: drawn in ASCII", "LANG=C.UTF-8 draws finer graphs")
    return Check("locale", "ok", f"{name}: UTF-8" if name else "none is set: taken for UTF-8; --ascii draws in ASCII")


def _has_card(root: Path) -> bool:
    """Whether the machine has a graphics card of NVIDIA's, be there a driver or not."""
    for folder in (root / "sys/bus/pci/devices").glob("*"):
        try:
            vendor, kind = ((folder / name).read_text().strip() for name in ("vendor", "class"))
        except OSError:
            continue
        if vendor == _NVIDIA and kind.startswith(_DISPLAYS):
            return True
    return False
