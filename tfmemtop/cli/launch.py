"""Makes the launch, with which an engine is started, from the options that the user typed and from the terminal.

Where the system has no room for both, the user's command runs without tfmemtop.
"""

import os
import resource
import shutil
import signal
import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from tfmemtop import boot
from tfmemtop.cli import Refusal
from tfmemtop.cli.arguments import RunArguments
from tfmemtop.cli.output import say
from tfmemtop.engine.process.launch import Export, Launch
from tfmemtop.events import Level, Notice
from tfmemtop.failure import reason
from tfmemtop.frameworks import FRAMEWORKS_VARIABLES, FrameworkName, UsedFramework
from tfmemtop.limits import FreeGpus, Machine, Whole, needs_gpus, parse_limit
from tfmemtop.placement import named, naming
from tfmemtop.settings import Settings, carry
from tfmemtop.ui.draw.layout import first_size
from tfmemtop.units import MIB, format_bytes

SMALLEST = (40, 12)
"""The smallest terminal, in columns and rows, on which the screen is of use."""

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
    """Return where the metrics go, or ``None`` if nowhere. A relative path is relative to *cwd*.

    Raises:
        Refusal: the options contradict each other.
    """
    if arguments.metrics is None:
        if arguments.metrics_sd is not None:
            raise Refusal("--metrics-sd needs --metrics; for example: --metrics 0 --metrics-sd tfmemtop.json")
        return None
    address, port = arguments.metrics
    if port == 0 and arguments.metrics_sd is None:
        raise Refusal("--metrics 0 takes any free port: --metrics-sd FILE has to tell Prometheus which")
    file, _ = file_for(arguments.metrics_sd)
    return Export(address=address, port=port, discovery=str(Path(cwd, file)) if file else None)


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
    name = named(str(pattern), environment, socket.gethostname(), os.getpid())
    path = Path(name.name)
    if name.added and pattern.exists() and not pattern.is_file():
        return pattern, []  # such as /dev/null, to which all ranks can write
    if path.parent != pattern.parent:
        with suppress(OSError):  # if this fails, opening the file fails later with a message
            path.parent.mkdir(parents=True, exist_ok=True)
    return path, naming(name, path.name)


def working_folder() -> str:
    """Return the path of the working folder, or its former path if it was removed: a command can still run in it."""
    try:
        return str(Path.cwd())
    except OSError:
        return os.environ.get("PWD", "")


def with_sizes(arguments: RunArguments, command: Sequence[str] = ()) -> Settings:
    """Return the settings of the first run of *command*, with sizes in bytes. Tell which variables they change.

    Raises:
        Refusal: a setting does not fit this machine.
    """
    settings = arguments.settings
    uuids: Sequence[str] = ()
    card = None
    wanted = (arguments.memory_limit, arguments.cpu_pool, arguments.gpus)
    if wanted != (None, None, None) or needs_gpus(settings):  # else a call to the driver would only delay the start
        machine = ask_machine()
        settings = resolve(arguments, machine)
        uuids, card = machine.uuids, machine.whole(settings).size
    if not command or (settings.growth, settings.memory_limit, settings.allocator) == (None, None, None):
        return settings
    settings = msgspec.structs.replace(settings, frameworks=_perhaps_used(command[0]))
    for name, value in carry(settings, uuids, card, os.environ).items():
        before = os.environ.get(name)
        if before and before != value and name.startswith(FRAMEWORKS_VARIABLES):
            say(f"the options change {name}={before} to {value}")
    return settings


def _perhaps_used(program: str) -> tuple[UsedFramework, ...]:
    """Return the frameworks that take settings, since it is not known before the first run which of them it uses.

    The version of PyTorch is known if *program* is in the folder of the Python that runs this.
    """
    from importlib import metadata  # only here: most runs have no such options

    version = ""
    found = shutil.which(program)
    if found and Path(found).parent == Path(sys.executable).parent:
        with suppress(metadata.PackageNotFoundError):
            version = metadata.version("torch")
    return UsedFramework(FrameworkName.JAX), UsedFramework(FrameworkName.PYTORCH, version)


def ask_machine() -> Machine:
    """Return the GPUs and the memory of this machine, as the driver and the kernel report them."""
    from tfmemtop.engine.sources.cgroup import host_memory
    from tfmemtop.engine.sources.nvml import Nvml
    from tfmemtop.engine.sources.outside.look import visible

    nvml = Nvml()
    reading = nvml.read()
    nvml.close()
    memory = host_memory()
    shown = visible(reading.devices, os.environ) if "CUDA_VISIBLE_DEVICES" in os.environ else reading.devices
    indices = {gpu.index for gpu in shown}
    return Machine(
        uuids=[gpu.uuid for gpu in reading.devices],
        totals=[gpu.total for gpu in reading.devices],
        free={one.index: one.free for one in reading.readings if one.index in indices and one.free is not None},
        host_memory=memory.total,
        host_memory_of=memory.owner,
        trouble=next((_said(notice) for notice in reading.troubles if notice.level is Level.ERROR), ""),
    )


def _said(notice: Notice) -> str:
    from tfmemtop.findings.rules.notices import say  # imported only if needed, because it takes a while to load

    return say(notice).text


def resolve(arguments: RunArguments, machine: Machine) -> Settings:
    """Return the settings with sizes in bytes, checked against *machine*.

    A share such as ``50%`` refers to the smallest GPU that is visible to the script; without a GPU, to the host memory.
    Where the GPUs with the most free memory are wanted, a line says which they are.

    Raises:
        Refusal: a size is not valid, or larger than the memory; a GPU does not exist; or two options set the size of
            the CPU pool.
    """
    settings = arguments.settings
    if not machine.uuids and arguments.memory_limit is not None and arguments.cpu_pool is not None:
        twice = "--memory-limit sets the size of the CPU pool: give it or --cpu-pool, not both"
        raise Refusal(f"without a GPU, {twice}")
    try:
        if isinstance(arguments.gpus, FreeGpus):
            settings = msgspec.structs.replace(settings, gpus=_freest(arguments.gpus, machine))
        carry(settings, machine.uuids)
        return msgspec.structs.replace(
            settings,
            memory_limit=_size("--memory-limit", arguments.memory_limit, machine.whole(settings)),
            cpu_pool=_size("--cpu-pool", arguments.cpu_pool, machine.host),
        )
    except ValueError as error:
        trouble = f" ({machine.trouble})" if machine.trouble else ""
        raise Refusal(f"{reason(error)}{trouble}") from error


def _freest(wanted: FreeGpus, machine: Machine) -> tuple[int, ...]:
    """Return the GPUs with the most free memory, and print a line that says which and why."""
    chosen = wanted.chosen(machine.free)
    sizes = [f"{format_bytes(machine.free[index])} of {format_bytes(machine.totals[index])}" for index in chosen]
    gpus = f"GPUs {', '.join(map(str, chosen))} have" if len(chosen) > 1 else f"GPU {chosen[0]} has"
    say(f"--gpus {wanted}: {gpus} the most free memory, {' and '.join(sizes)}")
    return chosen


def bounds(
    settings: Settings, smallest: str | None, largest: str | None, machine: Machine
) -> tuple[int | None, int | None, int | None]:
    """Return the *smallest* and the *largest* limit to try, if they are given, and the size of the memory; in bytes.

    Raises:
        Refusal: one of them is not a size, or larger than the memory, or the smallest is above the largest.
    """
    whole = machine.host if settings.gpus == () else machine.whole(settings)
    least = _size("--from", smallest, whole)
    most = _size("--to", largest, whole)
    if least is not None and most is not None and least > most:
        raise Refusal(f"--from {smallest} is more than --to {largest}")
    return least, most, whole.size


def _size(flag: str, text: str | None, whole: Whole) -> int | None:
    if text is None:
        return None
    try:
        return parse_limit(text, whole)
    except ValueError as error:
        raise Refusal(f"{flag}: {reason(error)}") from error


def terminal_size(instead: str = "use tfmemtop record -- COMMAND…, or tfmemtop --once") -> tuple[int, int]:
    """Return columns and rows of the terminal for the screen. *instead* is the advice in a refusal.

    Raises:
        Refusal: there is no terminal, the screen cannot be drawn on it, or it is too small.
    """
    for stream, name in ((sys.stdin, "input"), (sys.stdout, "output")):
        if stream is None or stream.closed or not stream.isatty():
            raise Refusal(f"standard {name} is not a terminal: {instead}")
    if os.environ.get("TERM", "dumb") in ("dumb", ""):
        raise Refusal(f"the terminal cannot be drawn on (TERM is dumb or not set): {instead}")
    columns, rows = os.get_terminal_size(sys.stdout.fileno())
    if columns == 0 or rows == 0:  # the terminal reports no size, for example a serial line
        return 80, 24
    if columns < SMALLEST[0] or rows < SMALLEST[1]:
        needed = "the screen needs {}×{}: make it larger".format(*SMALLEST)
        raise Refusal(f"the terminal has {columns}×{rows} cells; {needed}, or {instead}")
    return columns, rows


def script_terminal_size() -> tuple[int, int]:
    """Return columns and rows of the script's own terminal, as they will be after the screen is first drawn.

    Raises:
        Refusal: there is no terminal, the screen cannot be drawn on it, or it is too small.
    """
    return first_size(*terminal_size(), _gpus())


def _gpus() -> int:
    """Return the number of GPUs in the driver's list in ``/proc``. A call to the driver would delay the start."""
    try:
        return len(os.listdir("/proc/driver/nvidia/gpus"))  # noqa: PTH208 (only their number)
    except OSError:
        return 0


NO_ROOM = "the system allows too few threads (ulimit -u) or too little memory (ulimit -v)"

_THREADS = 32
"""The threads and processes that tfmemtop starts at most, with as many of the command's as it needs at least."""
_ADDRESSES = 512 * MIB
"""The room for addresses in which tfmemtop's threads can be started. The import of TensorFlow needs more."""

_NOT_FOUND, _NOT_STARTED = 127, 126  # the exit codes that a shell uses


def has_room() -> bool:
    """Return whether tfmemtop's threads can be started beside the command's. It would fail if it lacked one later.

    A child process tries that. Each thread would leave 64 MiB of addresses reserved in this process, which count
    against a limit of its memory (``ulimit -v``).
    """
    if 0 <= resource.getrlimit(resource.RLIMIT_AS)[0] < _ADDRESSES:
        return False
    try:
        child = os.fork()
    except OSError:
        return False
    if not child:
        try:
            _start_threads()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0


def _start_threads() -> None:
    threading.stack_size(1 << 16)  # bytes: the usual size would count against a limit of memory
    never = threading.Event()
    for _ in range(_THREADS):
        threading.Thread(target=never.wait, daemon=True).start()


def run_alone(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Replace this process by *command*; return an exit code only if that fails."""
    for number in signal.valid_signals():
        with suppress(OSError):  # the handlers of KILL and STOP cannot be set
            signal.signal(number, signal.SIG_IGN if number in boot.ignored else signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, boot.blocked)
    try:
        os.execvpe(command[0], list(command), environment)
    except OSError as error:
        say(f"the command cannot be started: {command[0]}: {error.strerror or error}")
        return _NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_STARTED
