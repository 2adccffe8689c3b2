"""The rooms know only whom they may know: design by a test, not by goodwill."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "tfmemtop"

# room → rooms of tfmemtop it may import; what stands in nobody's list is free to all.
MAY_IMPORT: dict[str, set[str]] = {
    "safe": set(),
    "failure": {"safe"},
    "units": set(),
    "bounds": set(),
    "charset": set(),
    "settings": {"units", "bounds"},
    "events": {"settings", "bounds"},
    "options": set(),
    "recording": {"events", "settings"},
    "summary": {"events", "failure", "units", "state", "verdicts"},
    "inject": set(),
    "agent": set(),
    "probe": {"boot", "agent.native", "agent.trust"},  # a library is tried as a script's process would use it
    "demo": set(),
    "state": {"events", "failure", "settings", "units"},
    "verdicts": {"state", "events", "failure", "settings", "units"},
    "compare": {"state", "settings", "units", "verdicts"},
    "fit": {"events", "settings", "units"},
    "engine": {"boot", "bounds", "events", "settings", "units", "recording", "probe"},
    "doctor": {"engine", "probe", "charset", "units", "agent"},
    "ui": {
        *("state", "settings", "verdicts", "units", "events", "options", "recording", "compare", "fit"),
        *("charset", "safe", "failure", "engine.client"),
    },
    "commands": {
        *("boot", "engine", "events", "settings", "units", "charset", "options", "recording", "summary"),
        *("state", "verdicts", "compare", "fit", "doctor", "ui.main", "ui.layout", "safe", "failure"),
    },
    "cli": {"commands", "options", "charset", "failure"},
    "boot": set(),
    "__main__": {"boot"},
    "__init__": set(),
}

# The only homes of libraries that cost much or that may be missing.
HOMES: dict[str, tuple[str, ...]] = {
    "pynvml": ("engine.nvml",),
    "textual": ("ui",),
    "rich": ("ui",),
    "pyte": ("ui",),
    "tensorflow": ("demo",),
    "keras": ("demo",),
    "numpy": ("demo",),
    "psutil": ("engine", "commands"),
}

STDLIB_ONLY = ("boot", "inject", "agent", "probe", "demo.__init__")


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield ".".join(path.relative_to(PACKAGE).with_suffix("").parts), ast.parse(path.read_text(), str(path))


def imports(module: str, tree: ast.Module) -> Iterator[str]:
    """Every module that is imported anywhere in *tree*, within functions too, as an absolute name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = ["tfmemtop", *module.split(".")][: -node.level]
                base = ".".join([*parts, base]).rstrip(".")
            # "from tfmemtop import events" imports a module, "from tfmemtop.events import Run" a name of one.
            yield from (f"{base}.{alias.name}" if base == "tfmemtop" else base for alias in node.names)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in (
            "import_module",
            "__import__",
        ):
            constants = (argument.value for argument in node.args[:1] if isinstance(argument, ast.Constant))
            yield from (value for value in constants if isinstance(value, str))


def within(name: str, rooms: set[str] | tuple[str, ...]) -> bool:
    return any(name == room or name.startswith(room + ".") for room in rooms)


ALL = dict(modules())


@pytest.mark.parametrize("module", ALL)
def test_a_room_imports_only_its_neighbours(module: str) -> None:
    room = module.split(".")[0]
    assert room in MAY_IMPORT, f"{room} is a new room: say here what it may know"
    for name in imports(module, ALL[module]):
        top, _, inner = name.partition(".")
        if top == "tfmemtop" and inner and inner != "__version__":
            assert within(inner, {room} | MAY_IMPORT[room]), f"{module} must not import {name}"
        elif within(module, STDLIB_ONLY):
            assert top in sys.stdlib_module_names or top == "tfmemtop", f"{module} must not import {name}"


@pytest.mark.parametrize("library", HOMES)
def test_a_library_is_imported_at_its_home_only(library: str) -> None:
    for module, tree in ALL.items():
        for name in imports(module, tree):
            if within(name, (library,)):
                assert within(module, HOMES[library]), f"{module} must not import {name}"


def test_the_hooks_folder_offers_no_other_name() -> None:
    assert [path.name for path in (PACKAGE / "inject").iterdir() if path.name != "__pycache__"] == ["sitecustomize.py"]


@pytest.mark.parametrize(
    ("program", "forbidden"),
    [
        ("from tfmemtop.cli import main; main(['--help'])", ("textual", "rich", "asyncio", "psutil", "pynvml")),
        ("from tfmemtop.cli import main; main(['--version'])", ("textual", "rich", "asyncio", "psutil", "pynvml")),
        ("from tfmemtop.cli import main; main(['--once'])", ("textual", "rich")),
        ("import tfmemtop.engine.main", ("textual", "rich", "tensorflow")),
        ("import tfmemtop.engine.keeper", ("msgspec", "asyncio", "subprocess")),
        ("import tfmemtop.ui.main", ("tensorflow", "pynvml", "psutil")),
        ("import tfmemtop.state, tfmemtop.verdicts", ("textual", "rich", "pynvml", "psutil")),
    ],
)
def test_what_is_not_needed_is_not_loaded(program: str, forbidden: tuple[str, ...]) -> None:
    check = f"{program}\nimport sys\nprint([name for name in {forbidden!r} if name in sys.modules], file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "[]"
