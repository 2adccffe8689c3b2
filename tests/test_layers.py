"""Each room, a package or module of tfmemtop, imports only the rooms that it may import. These tests enforce it."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "tfmemtop"

# room → the rooms of tfmemtop that it may import. A room that is in no list is imported by no other room.
MAY_IMPORT: dict[str, set[str]] = {
    "words": {
        "cluster",
        "tensorflow_text",
        "doctor.check",
        "notebooks.python",  # why a Python is unfit for kernels
        "session.not_chosen",  # why the user's choice cannot be used
        "recording.errors",  # what is wrong with a recording
        "failure",  # an unexpected exception
        "filenames",  # what became of the name of a file
        "placement",
        "ending",
        "fit",
        "rules",
        "state",
        "events",
        "limits",  # a limit that is more than there is
        "settings",
        "suggested",
        "units",
    },
    "exit_codes": set(),
    "ending": {"exit_codes"},
    "units": set(),
    "uncollected": set(),
    "home": set(),
    "failure": set(),
    "tensorflow_text": set(),
    "bounds": set(),
    "charset": set(),
    "settings": {"bounds", "units"},
    "limits": {"settings", "units"},
    "suggested": {"settings", "units"},
    "placement": {"bounds"},
    "filenames": {"placement"},
    "events": {"ending", "limits", "settings", "bounds", "placement"},  # limits: what sets the limit of host memory
    "options": set(),
    "recording": {"tensorflow_text", "events", "units"},
    "reports": {"cluster", "events", "words", "state", "rules", "units"},
    "inject": set(),
    "help": set(),
    "agent": set(),
    # a library is tried as a script's process would use it
    "probe": {"boot", "exit_codes", "home", "agent.native", "agent.native_windows", "agent.trust"},
    "whatif": {"events", "probe", "units"},  # the recorded allocations, and the program that replays them
    "xla": {"events"},
    "notebooks": {"boot", "home", "words.magic"},  # the magic's messages, which the kernel itself shows
    "demo": set(),
    # the first picture, drawn before anything else is loaded: it imports only what it needs to draw
    "first": {"programs", "ui.draw.layout", "units"},
    "crash": set(),
    "programs": set(),
    "state": {
        "programs",
        "placement",
        "limits",
        "tensorflow_text",
        "ending",
        "events",
        "failure",  # the exception that an event has raised
        "settings",
        "units",
    },
    "rules": {"tensorflow_text", "ending", "state", "events", "settings", "suggested", "units"},
    # the state as samples for Prometheus
    "metrics": {"events", "rules", "state", "words.dashboard", "words.metrics"},
    "session": {
        "boot",
        "exit_codes",
        "whatif",
        "failure",  # why the replays of a search failed
        "events",
        "fit",
        "limits",
        "recording",
        "settings",
        "suggested",
        "state",
    },
    "fit": {"tensorflow_text", "ending", "events", "settings", "suggested", "units"},
    "engine": {
        *("uncollected", "tensorflow_text", "boot", "bounds", "events", "limits", "settings", "units", "recording"),
        "exit_codes",
        "home",
        "placement",
        "failure",  # why the export of metrics has failed
        *("probe", "words.keeping", "xla", "whatif"),
        "rules",  # which find where a window of allocations would show more
        "metrics",  # which threads of the engine export
        "agent.layouts",  # the same table is used from inside and from outside
    },
    # answers of Prometheus: rows of an overview, and events of one GPU
    "cluster": {"events", "rules", "settings", "state"},
    "doctor": {"engine", "events", "limits", "probe", "charset", "agent"},
    "ui": {
        *("state", "settings", "suggested", "rules", "units", "events", "options", "reports", "session", "fit"),
        *("charset", "help", "words", "engine.stream.client", "placement", "cluster"),
        "exit_codes",
        "crash",  # after a crash the terminal is restored
        "first.begin",  # the screen replaces its picture
        "notebooks.server",  # which can restart a kernel
        "notebooks.origin",  # for which starts of a kernel a choice holds
    },
    "commands": {
        "exit_codes",
        "home",
        "tensorflow_text",
        "uncollected",
        *("boot", "crash", "engine", "events", "limits", "settings", "units", "charset", "options", "recording"),
        *("reports", "state", "rules", "fit", "doctor", "help", "ui.main", "ui.draw.layout", "words"),
        *("session.whatif", "whatif", "notebooks", "filenames", "placement", "metrics.dashboard", "cluster"),
        "probe.build",  # a search builds the probe before its first try
    },
    "cli": {"commands", "exit_codes", "charset", "words.failure", "words.usage"},
    "boot": {"first.begin"},
    "__main__": {"boot"},
    "__init__": {"notebooks.magic"},  # %load_ext tfmemtop
}

# The only modules that may import libraries that are slow to load or that may be missing.
HOMES: dict[str, tuple[str, ...]] = {
    "pynvml": ("engine.sources.nvml",),
    "textual": ("ui",),
    "rich": ("ui", "commands.help"),
    "pyte": ("ui",),
    "tensorflow": ("demo",),
    "keras": ("demo",),
    "numpy": ("demo",),
    "psutil": ("engine.sources.processes",),
    "prometheus_client": (),  # only the tests use it, to read the metrics
    "IPython": ("notebooks.magic",),
    "matplotlib": ("notebooks.magic",),
}


# The engine's own rooms, each with those below it. The modules that connect them are above all three.
IN_THE_ENGINE: dict[str, set[str]] = {
    "engine.stream": set(),
    "engine.sources": {"engine.stream"},
    "engine.process": {"engine.stream", "engine.sources"},
}

STDLIB_ONLY = ("boot", "inject", "agent", "probe", "demo.__init__")


ALL = {".".join(path.relative_to(PACKAGE).with_suffix("").parts): path for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def nodes(module: str) -> tuple[ast.AST, ...]:
    """Return all nodes of the syntax tree of *module*."""
    return tuple(ast.walk(ast.parse(ALL[module].read_text(), str(ALL[module]))))


@cache
def imported(module: str) -> tuple[tuple[str, str], ...]:
    """Return every import anywhere in *module*, also in functions and under ``TYPE_CHECKING``.

    Each is the absolute name of a module, and the name imported from it, or ``""`` if the module itself is imported.
    """
    return tuple(_imported(module))


def _imported(module: str) -> Iterator[tuple[str, str]]:
    for node in nodes(module):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = ["tfmemtop", *module.split(".")][: -node.level]
                base = ".".join([*parts, base]).rstrip(".")
            yield from ((base, alias.name) for alias in node.names)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in (
            "import_module",
            "__import__",
        ):
            constants = (argument.value for argument in node.args[:1] if isinstance(argument, ast.Constant))
            yield from ((value, "") for value in constants if isinstance(value, str))


def imports(module: str) -> Iterator[str]:
    """Yield the absolute name of every module that is imported anywhere in *module*."""
    for base, name in imported(module):
        # "from tfmemtop import events" imports a module, "from tfmemtop.events import Run" a name of one.
        yield f"{base}.{name}" if base == "tfmemtop" and name else base


def within(name: str, rooms: set[str] | tuple[str, ...]) -> bool:
    return any(name == room or name.startswith(room + ".") for room in rooms)


@pytest.mark.parametrize("module", ALL)
def test_a_room_imports_only_its_neighbours(module: str) -> None:
    room = module.split(".")[0]
    assert room in MAY_IMPORT, f"{room} is a new room: say here what it may know"
    for name in imports(module):
        top, _, inner = name.partition(".")
        if top == "tfmemtop" and inner and inner != "__version__":
            assert within(inner, {room} | MAY_IMPORT[room]), f"{module} must not import {name}"
        elif within(module, STDLIB_ONLY):
            assert top in sys.stdlib_module_names or top == "tfmemtop", f"{module} must not import {name}"


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_no_permission_is_unused(room: str) -> None:
    known = {name for module in ALL if within(module, {room}) for pair in imported(module) for name in names_in(*pair)}
    assert [it for it in sorted(MAY_IMPORT[room]) if not any(within(name, {f"tfmemtop.{it}"}) for name in known)] == []


def names_in(base: str, name: str) -> tuple[str, str]:
    """Return the two names that an import of *name* from *base* may mean: a name of a module, or a module itself."""
    return base, f"{base}.{name}"


def modules_imported(module: str) -> Iterator[str]:
    """Yield the modules of the package that *module* imports anywhere."""
    for base, name in imported(module):
        # A name imported from a package may be one of its modules, or a name in its __init__.
        for known in (f"{base}.{name}", base, f"{base}.__init__"):
            if known.removeprefix("tfmemtop.") in ALL:
                yield known.removeprefix("tfmemtop.")
                break


@pytest.mark.parametrize("room", sorted(MAY_IMPORT))
def test_no_circle_within_a_room(room: str) -> None:
    of_room = {module for module in ALL if within(module, {room})}
    try:
        TopologicalSorter({module: set(modules_imported(module)) & of_room for module in of_room}).prepare()
    except CycleError as error:
        pytest.fail(f"a circle of imports: {' -> '.join(error.args[1])}")


@pytest.mark.parametrize("room", IN_THE_ENGINE)
def test_a_room_of_the_engine_imports_only_those_below_it(room: str) -> None:
    for module in ALL:
        if within(module, {room}):
            for name in modules_imported(module):
                assert not within(name, {"engine"}) or within(name, {room} | IN_THE_ENGINE[room]), f"{module}: {name}"


@pytest.mark.parametrize("library", HOMES)
def test_a_library_is_imported_at_its_home_only(library: str) -> None:
    for module in ALL:
        for name in imports(module):
            if within(name, (library,)):
                assert within(module, HOMES[library]), f"{module} must not import {name}"


# Except for commands.saying, these are small programs. The process that starts one reads what it prints.
PRINTING = ("commands.saying", "engine.__main__", "probe.build", "probe.trial", "probe.replay_trial", "demo.train")


@pytest.mark.parametrize("module", ALL)
def test_only_saying_prints(module: str) -> None:
    for node in nodes(module):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print":
            assert module in PRINTING, f"{module} must print through commands/saying.py"


def test_the_hooks_folder_offers_no_other_name() -> None:
    assert [path.name for path in (PACKAGE / "inject").iterdir() if path.name != "__pycache__"] == ["sitecustomize.py"]


@pytest.mark.programs
@pytest.mark.parametrize(
    ("program", "forbidden"),
    [
        ("from tfmemtop.cli import main; main(['--help'])", ("textual", "rich", "asyncio", "psutil", "pynvml")),
        ("from tfmemtop.cli import main; main(['--version'])", ("textual", "rich", "asyncio", "psutil", "pynvml")),
        ("from tfmemtop.cli import main; main(['--once'])", ("textual", "rich")),
        # before the script starts
        ("import tfmemtop.commands.live", ("textual", "rich", "asyncio", "tfmemtop.rules", "tfmemtop.state")),
        ("import tfmemtop.engine.main, tfmemtop.engine.record", ("textual", "rich", "tensorflow", "tfmemtop.metrics")),
        ("import tfmemtop.engine.exporter", ("tfmemtop.rules", "tfmemtop.state")),
        ("import tfmemtop.metrics.page", ("asyncio", "ssl", "http.client", "socketserver")),
        ("import tfmemtop.engine.process.keeper", ("msgspec", "asyncio", "subprocess")),
        (
            "import tfmemtop.ui.main",
            ("tensorflow", "pynvml", "psutil", "markdown_it", "linkify_it", "pygments", "pyte"),
        ),
        ("import tfmemtop.state, tfmemtop.rules", ("textual", "rich", "pynvml", "psutil")),
    ],
)
def test_what_is_not_needed_is_not_loaded(program: str, forbidden: tuple[str, ...]) -> None:
    check = f"{program}\nimport sys\nprint([name for name in {forbidden!r} if name in sys.modules], file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "[]"
