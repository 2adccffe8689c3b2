"""Makes the launch, with which an engine is started, from the options that the user typed."""

import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tfmemtop import boot
from tfmemtop.cli import Refusal, usage
from tfmemtop.cli.arguments import RunArguments
from tfmemtop.cli.limits import resolve
from tfmemtop.engine.process.launch import Export, Launch
from tfmemtop.engine.sources.driver_answers import Trouble
from tfmemtop.events import Level
from tfmemtop.filenames import named, naming
from tfmemtop.limits import Machine, needs_gpus
from tfmemtop.settings import Settings

FIRST = 1
"""The process number of the first process of a container. If it ends, all others end."""

_INITS = {"docker-init", "podman-init", "tini", "tini-static", "dumb-init", "catatonit"}
"""First processes that start one program, pass signals on to it, and end with it."""


def make_launch(
    arguments: RunArguments, argv: Sequence[str], settings: Settings, columns: int = 80, rows: int = 24
) -> Launch:
    """Return the launch of *argv* with *settings*, in the current working folder and environment.

    *columns* and *rows* are the size of the script's terminal.

    Raises:
        Refusal: the options for the metrics contradict each other.
    """
    cwd = working_folder()
    return Launch(
        argv=list(argv),
        cwd=cwd,
        environment=dict(os.environ),
        settings=settings,
        interval_s=arguments.interval,
        holders_interval_s=arguments.holders_interval,
        trace=arguments.trace,
        probe=not arguments.no_probe,
        keep=not arguments.no_record,
        record=str(Path(cwd, arguments.record)) if arguments.record else None,
        columns=columns,
        rows=rows,
        ignored=boot.ignored,
        blocked=boot.blocked,
        on_end=arguments.on_end,
        on_oom=arguments.on_oom,
        export=export_of(arguments, cwd),
        task=is_task(),
        first=os.getpid() == FIRST or os.getsid(0) == FIRST,
    )


def is_task() -> bool:
    """Return whether a Slurm step, or a container, ends when this process ends.

    It does if this process, or a script that waits for it, is the step's task, the container's first process, or the
    program of the container's init. A shell with job control, such as that of ``srun --pty bash``, goes on without this
    process.
    """
    first, group = os.getsid(0), os.getpgrp()
    if os.getpid() == FIRST or _has_init_as_parent(group):
        return True
    return group == first and ("SLURM_STEP_ID" in os.environ or first == FIRST)


def _has_init_as_parent(pid: int) -> bool:
    """Return whether the parent of *pid* is a container's init, such as that of ``docker run --init``."""
    if pid == os.getpid() and os.getppid() != FIRST:
        return False
    from tfmemtop.engine.sources.processes import find  # here, since psutil takes a while to load

    process, init = find(pid), find(FIRST)
    return process is not None and process.ppid == FIRST and init is not None and init.name in _INITS


def export_of(arguments: RunArguments, cwd: str) -> Export | None:
    """Return where the metrics go, or ``None`` if nowhere. Relative paths are relative to *cwd*.

    Raises:
        Refusal: the options contradict each other.
    """
    if arguments.metrics is None:
        if arguments.metrics_sd is not None:
            raise Refusal(usage.METRICS_SD_ALONE)
        if arguments.metrics_file is None:
            return None
    elif arguments.metrics[1] == 0 and arguments.metrics_sd is None:
        raise Refusal(usage.METRICS_ANY_PORT)
    address, port = arguments.metrics or ("127.0.0.1", None)

    def path(pattern: Path | None) -> str | None:
        file, _ = file_for(pattern)
        return None if file is None else str(Path(cwd, file))

    return Export(
        address=address, port=port, discovery=path(arguments.metrics_sd), textfile=path(arguments.metrics_file)
    )


def file_for(pattern: Path | None, attach: int | None = None) -> tuple[Path | None, list[str]]:
    """Return the file that *pattern* means for this process, and remarks about it for the user.

    If process *attach* is given, its rank counts instead. The folder is made if its name depends on the rank, too.
    """
    if pattern is None:
        return None, []
    environment = dict(os.environ)
    if attach is not None:
        from tfmemtop.engine.sources.processes import read_environment

        with suppress(OSError):  # the process is another user's; the user gets that message later
            environment = read_environment(attach)
    found = named(str(pattern), environment, socket.gethostname(), os.getpid())
    path = Path(found.name)
    if found.added and pattern.exists() and not pattern.is_file():
        return pattern, []  # such as /dev/null, to which all ranks can write
    if path.parent != pattern.parent:
        with suppress(OSError):  # if this fails, opening the file fails later with a message
            path.parent.mkdir(parents=True, exist_ok=True)
    return path, naming(found, path.name)


def working_folder() -> str:
    """Return the path of the working folder, or its former path if it was removed: a command can still run in it."""
    try:
        return str(Path.cwd())
    except OSError:
        return os.environ.get("PWD", "")


def with_sizes(arguments: RunArguments) -> Settings:
    """Return the settings with sizes in bytes.

    Raises:
        Refusal: a setting does not fit this machine.
    """
    settings = arguments.settings
    if arguments.memory_limit is None and arguments.cpu_pool is None and not needs_gpus(settings):
        return settings  # a call to the driver would only delay the start
    return resolve(arguments, ask_machine())


def ask_machine() -> Machine:
    """Return the GPUs and the memory of this machine, as the driver and the kernel report them."""
    from tfmemtop.engine.sources.cgroup import host_memory
    from tfmemtop.engine.sources.nvml import Nvml

    nvml = Nvml()
    reading = nvml.read()
    nvml.close()
    memory = host_memory()
    return Machine(
        uuids=[gpu.uuid for gpu in reading.devices],
        totals=[gpu.total for gpu in reading.devices],
        host_memory=memory.total,
        host_memory_of=memory.owner,
        trouble=next((_said(trouble) for trouble in reading.troubles if trouble.level is Level.ERROR), ""),
    )


def _said(trouble: Trouble) -> str:
    from tfmemtop.findings.notice_texts import say_kind  # imported only if needed, because it takes a while to load

    return say_kind(trouble.kind, trouble.detail, trouble.about).text
