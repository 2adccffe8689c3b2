"""The checks of this machine and terminal: driver, memory per process, sockets, terminal."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from tfmemtop.charset import locale_name, takes_utf8
from tfmemtop.cli.checks.check import Check, State, missing, ok, unknown
from tfmemtop.engine.sources.nvml import Nvml, NvmlReading
from tfmemtop.engine.sources.processes import pid_namespace
from tfmemtop.engine.stream.folders import open_session
from tfmemtop.events import Level, NoticeKind
from tfmemtop.findings.notices import say_kind
from tfmemtop.units import counted

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
        names = [device.name for device in reading.devices]
        gpus = f"{counted(len(names), 'GPU')}: {', '.join(dict.fromkeys(names))}"
        return ok("driver", f"{version or 'version unknown'}, {gpus}")
    if trouble is None or trouble.kind is NoticeKind.NO_GPU:
        return missing("driver", "the driver answers but shows no GPU", "in a container: --gpus all")
    if trouble.level is Level.ERROR or _has_card(root):
        return missing("driver", *say_kind(trouble.kind, trouble.detail, trouble.about))
    return ok("driver", "no NVIDIA GPU here; TensorFlow's pool on the CPU is shown")


def shares(reading: NvmlReading, root: Path = Path("/")) -> Check:
    """Check whether the driver reports GPU memory per process."""
    name = "processes"
    if not reading.devices:
        return ok(name, "there is no GPU")
    reason = next((one.processes_missing for one in reading.readings if one.processes_missing), None)
    told = any(process.used is not None for one in reading.readings for process in one.processes)
    if pid_namespace(root) != "first" and not told:
        text = "process numbers here differ from those of the machine; pools are still read"
        text += f"; {reason.text}" if reason else ""
        return unknown(name, text, "start the container with --pid=host")
    if reason and any(device.mig for device in reading.devices):
        return missing(name, reason.text, "run as root, or on a GPU that is not divided")
    if reason:
        remedy = "nothing can be done; the pools, and how much of them is in use, are still read"
        return missing(name, reason.text, remedy)
    return ok(name, "the driver reports memory per process" if told else "no process is on a GPU now")


def sockets() -> Check:
    """Check whether a session can be made. It makes the folder, the lock and the sockets of one, and removes them."""
    try:
        session = open_session()
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        remedy = "set XDG_RUNTIME_DIR to a folder with room"
        return missing("sockets", f"{where}{error.strerror or error}", remedy)
    folder = session.path.parent
    session.close()
    return ok("sockets", f"in {folder}")


def terminal(environment: Mapping[str, str], smallest: tuple[int, int]) -> Check:
    """Check whether the screen can be drawn. The terminal must have at least *smallest* columns and rows."""
    name, kind = "terminal", environment.get("TERM", "")
    stdout, stdin = sys.stdout, sys.stdin
    if stdout is None or stdin is None or not (stdout.isatty() and stdin.isatty()):
        return unknown(name, "standard input or output is not a terminal", "record and --once need none")
    if kind in ("", "dumb"):
        return missing(name, f"TERM={kind}: nothing can be drawn on it", "set TERM, such as xterm-256color")
    columns, rows = os.get_terminal_size(stdout.fileno())
    size = f"{columns} by {rows}, {kind}"
    if 0 < columns < smallest[0] or 0 < rows < smallest[1]:
        return missing(name, size, f"make it {smallest[0]} by {smallest[1]} or larger")
    colours = "no colours, as NO_COLOR asks" if environment.get("NO_COLOR") else "16 colours of its own"
    if not takes_utf8(environment):
        locale = locale_name(environment)
        return Check(
            name,
            State.OK,
            f"{size}, {colours}, in ASCII, as the locale {locale} asks",
            "LANG=C.UTF-8 draws finer graphs",
        )
    return ok(name, f"{size}, {colours}")


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
