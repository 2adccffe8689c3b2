"""From what the user typed to what an engine is started with."""

import os
import sys
from pathlib import Path

import msgspec

from tfmemtop import boot
from tfmemtop.commands.arguments import Arguments
from tfmemtop.commands.limits import Machine, resolve
from tfmemtop.engine.launch import Launch
from tfmemtop.settings import Settings

DEMO = Path(__file__).parents[1] / "demo" / "train.py"
DEMO_POOL = 2 << 30
"""Bytes for the demo's pool on the CPU, about three times what it needs: a smaller limit can be tried."""


def make_launch(arguments: Arguments, columns: int, rows: int) -> Launch:
    """What to start: the command, where, in which environment, with which settings.

    *columns* and *rows* are the terminal's, in cells.

    Raises:
        Refusal: a setting does not fit this machine.
    """
    cwd = working_folder()
    demo = arguments.subcommand == "demo"
    return Launch(
        argv=[sys.executable, str(DEMO)] if demo else list(arguments.command),
        cwd=cwd,
        environment=dict(os.environ),
        settings=_demo_settings(arguments) if demo else _settings(arguments),
        interval_s=arguments.interval_s,
        probe=arguments.probe,
        record=str(Path(cwd, arguments.record)) if arguments.record else None,
        columns=columns,
        rows=rows,
        ignored=boot.ignored,
        blocked=boot.blocked,
    )


def working_folder() -> str:
    """The path of the working folder, or what it was: that it has been removed is no hindrance to a command."""
    try:
        return str(Path.cwd())
    except OSError:
        return os.environ.get("PWD", "")


def _settings(arguments: Arguments) -> Settings:
    settings = arguments.settings
    sizes = (arguments.memory_limit, arguments.cpu_pool)
    if sizes == (None, None) and settings.gpus is None and settings.allocator is None:
        return settings  # asking the driver would only delay the start
    return resolve(arguments, ask_machine())


def _demo_settings(arguments: Arguments) -> Settings:
    machine = ask_machine()
    settings = resolve(arguments, machine)
    on_gpu = bool(machine.uuids) and settings.gpus != ()
    if on_gpu:
        # As TensorFlow comes, it would take the whole GPU at once, and there would be little to watch.
        return msgspec.structs.replace(settings, growth="on") if arguments.growth is None else settings
    if settings.cpu_pool is None and settings.memory_limit is None:
        settings = msgspec.structs.replace(settings, cpu_pool=DEMO_POOL)
    return settings


def ask_machine() -> Machine:
    """What there is; the driver is asked."""
    from tfmemtop.engine.cgroup import host_memory
    from tfmemtop.engine.nvml import Nvml

    nvml = Nvml()
    reading = nvml.read()
    nvml.close()
    memory = host_memory()
    return Machine(
        uuids=[gpu.uuid for gpu in reading.devices],
        totals=[gpu.total for gpu in reading.devices],
        host_memory=memory.total,
        host_memory_of=memory.owner,
        trouble=next((trouble.text for trouble in reading.troubles if trouble.level == "error"), ""),
    )
