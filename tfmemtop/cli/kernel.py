"""Have Jupyter start its kernels as sessions of tfmemtop.

usage: tfmemtop kernel install [OPTIONS]
usage: tfmemtop kernel list
usage: tfmemtop kernel remove [--name NAME]
example: tfmemtop kernel install

install adds the kernel "Python (tfmemtop)" to what Jupyter and VS Code offer. It runs the Python that --python names,
by default python (or python3) on PATH. ipykernel must be installed there. Options for the run, such as
--memory-limit 4G, apply to all its kernels.

Each start of such a kernel is a session with its own recording: tfmemtop ls lists it, tfmemtop attach shows it.
Jupyter itself calls "kernel start -- COMMAND". See also: tfmemtop help notebooks.
"""

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from tfmemtop.cli import Refusal
from tfmemtop.cli.arguments import RunArguments, file_name
from tfmemtop.cli.launch import NO_ROOM, has_room, make_launch, run_alone, with_sizes
from tfmemtop.cli.output import note, print_lines, say
from tfmemtop.cli.parser import Trailing, argument, option, switch
from tfmemtop.engine.process.launch import Kernel, start_apart
from tfmemtop.engine.sources.processes import read_command, start_ticks
from tfmemtop.engine.stream.kept_sessions import chosen_for_kernel
from tfmemtop.failure import describe
from tfmemtop.limits import FreeGpus, typed_gpus
from tfmemtop.notebooks import connection_file, kernelspec, notebook

_NAME, _TITLE = "tfmemtop", "Python (tfmemtop)"


_FOR_KERNELSPEC = "for the kernelspec"


class KernelArguments(RunArguments):
    """``do`` is the action; ``python`` and the others are for a kernelspec."""

    trailing = Trailing.ALLOWED
    do: str = argument("ACTION", "install, list or remove", needed=True, choices=("install", "list", "remove", "start"))
    python: Path | None = option(_FOR_KERNELSPEC, "the Python that the kernels run in", metavar="FILE", type=Path)
    user: bool = switch(_FOR_KERNELSPEC, "install the kernel for this user (default)")
    prefix: Path | None = option(
        _FOR_KERNELSPEC, "install the kernel into this environment", metavar="FOLDER", type=file_name
    )
    name: str = option(_FOR_KERNELSPEC, f"the kernel's name (default {_NAME})", metavar="NAME", default=_NAME)
    display_name: str = option(
        _FOR_KERNELSPEC, f"the name that Jupyter shows (default {_TITLE})", metavar="TEXT", default=_TITLE
    )

    def check(self) -> None:
        if (self.do == "start") != bool(self.command):
            needs = "needs the kernel's command; for example: tfmemtop kernel install"
            raise Refusal(f"kernel {self.do} {needs if self.do == 'start' else 'takes no command after --'}")
        if not kernelspec.is_name(self.name):
            raise Refusal(f"{self.name!r} is not a name for a kernel; use letters, digits and . _ - only")
        if self.user and self.prefix:
            raise Refusal("--user and --prefix contradict each other; give one of them")


ARGUMENTS = KernelArguments


def run(arguments: KernelArguments) -> int:
    """Carry out the action; return 0. With ``start`` this process becomes the kernel.

    Raises:
        Refusal: the action cannot be carried out.
    """
    match arguments.do:
        case "install":
            _install(arguments)
        case "list":
            _list()
        case "remove":
            _remove(arguments.name)
        case _:
            return _start(arguments)
    return 0


def _install(arguments: KernelArguments) -> None:
    with_sizes(arguments)  # raises Refusal if a size does not fit this machine
    interpreter = kernelspec.examine_python(arguments.python)
    folder = kernelspec.folder_under(arguments.prefix) if arguments.prefix else kernelspec.user_folder()
    name, title = arguments.name, arguments.display_name
    try:
        path = kernelspec.write(folder, name, title, interpreter, _options(arguments))
    except kernelspec.NotOurs as error:
        problem = f"{error.filename}: there is a kernelspec of this name that tfmemtop did not make"
        raise Refusal(problem, 1) from None
    choose = "Choose it in Jupyter or VS Code; then, in a terminal: tfmemtop attach"
    print_lines([f'the kernel "{title}" is in {path}', choose])
    if kernelspec.hidden_by_vs_code(name, title):
        hidden = "it hides names such as python3, and display names that begin with Python 3"
        say(f'VS Code does not list the kernel "{title}" ({name}): {hidden}')


def _list() -> None:
    specs = list(kernelspec.installed())
    width = max((len(spec.name) for spec in specs), default=0)
    print_lines(f"{spec.name:<{width}}  {spec.display_name}  {spec.python}  {spec.folder}" for spec in specs)
    if not specs:
        note("no kernel of tfmemtop is installed; add one: tfmemtop kernel install")


def _remove(name: str) -> None:
    found = next((spec for spec in kernelspec.installed() if spec.name == name), None)
    if found is None:
        raise Refusal(f"tfmemtop has installed no kernel {name!r} here; tfmemtop kernel list shows those there are", 1)
    kernelspec.remove(found)
    print_lines([f"removed {found.folder}"])


def _options(arguments: KernelArguments) -> list[str]:
    """Return the options of a run that were typed, as words of a command line."""
    words = []
    for name, value in vars(arguments).items():
        flag = f"--{name.replace('_', '-')}"
        if name == "gpus":
            words.append(f"{flag}={value if isinstance(value, FreeGpus) else typed_gpus(value)}")
        elif name in RunArguments.__annotations__:
            words.append(flag if value is True else f"{flag}={value}")
    return words


def _kernel(command: list[str], folder: str, environment: Mapping[str, str]) -> Kernel:
    """Return what is known of the kernel that this process will become."""
    given = connection_file(command)
    connection = str(Path(folder, given)) if given else ""
    parent = os.getppid()
    return Kernel(
        pid=os.getpid(),
        connection=connection,
        # Another Jupyter may use the same name for a connection file later. Only the parent restarts this kernel.
        shared="\0".join([connection, str(parent), str(start_ticks(parent))]),
        notebook=notebook(environment, read_command(parent)),
    )


def _start(arguments: KernelArguments) -> int:
    """Replace this process by the kernel. If tfmemtop fails, the kernel starts without it, and a line has the reason.

    Return an exit code only if the kernel cannot be started.
    """
    command, environment = list(arguments.command), dict(os.environ)
    try:
        if not has_room():
            raise Refusal(NO_ROOM)
        launch = make_launch(arguments, command, with_sizes(arguments, command))
        kernel = _kernel(command, launch.cwd, environment)
        settings = chosen_for_kernel(kernel.shared) or launch.settings
        launched = start_apart(msgspec.structs.replace(launch, kernel=kernel, settings=settings))
        if launched.error is not None:
            raise Refusal(launched.error)
        environment = launched.environment or environment
    except Refusal as refusal:
        say(f"this kernel runs without tfmemtop: {refusal}")
    except Exception as error:
        say(f"this kernel runs without tfmemtop: {describe(error)}")
    return run_alone(command, environment)
