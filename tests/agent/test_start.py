"""Every Python process of the watched command starts as it would without the hook."""

import shutil
import venv
import zipfile
from pathlib import Path

import pytest

from tests.hooked import INJECT, PYTHON, Forks, Monitor, Script, both, outcome, run, start

LOOK = """
import sys
print(sys.path, sys.flags, sys.argv, __name__, [type(finder).__name__ for finder in sys.meta_path][-3:])
print(sorted(sys.modules), sorted(sys.path_importer_cache))
try:
    import tfmemtop_agent, _tfmemtop_agent
except ImportError as error:
    print(error)
"""


@pytest.mark.parametrize("options", [[], ["-W", "error"], ["-X", "dev"]])
def test_a_script_sees_no_difference(monitor: Monitor, script: Script, options: list[str]) -> None:
    bare, hooked = both(monitor, *options, script(LOOK), "a", "b c")
    assert bare == hooked and bare.code == 0


@pytest.mark.parametrize("arguments", [["-c", LOOK], ["-m", "platform"], ["-m", "no.such"], ["-"], ["nowhere.py"]])
def test_nor_do_other_ways_to_start(monitor: Monitor, arguments: list[str]) -> None:
    bare, hooked = start(None, *arguments), start(monitor, *arguments)
    assert outcome(bare, LOOK) == outcome(hooked, LOOK)


@pytest.mark.parametrize(
    "source",
    [
        "print('mine', __name__, __file__); import sys; sys.marked = 1",
        "raise ValueError('mine')",
        "import no_such_module",
        "raise ImportError('mine', name='sitecustomize')",
        "import sys; sys.modules['sitecustomize'] = sys",
        "def broken(:",
    ],
)
def test_the_users_own_sitecustomize_runs(monitor: Monitor, tmp_path: Path, script: Script, source: str) -> None:
    own = own_sitecustomize(tmp_path, source)
    look = script("import sys; print(getattr(sys, 'marked', 0), sys.modules.get('sitecustomize'), sys.path[:2])")
    bare, hooked = both(monitor, look, PYTHONPATH=own)
    assert bare == hooked


def test_a_sitecustomize_that_ends_python_ends_it(monitor: Monitor, tmp_path: Path) -> None:
    bare, hooked = both(monitor, "-c", "", PYTHONPATH=own_sitecustomize(tmp_path, "raise SystemExit('mine')"))
    assert bare.code == hooked.code == 1 and bare.err.endswith("SystemExit: mine\n")
    assert hooked.err.endswith("SystemExit: mine\n")


def own_sitecustomize(folder: Path, source: str) -> str:
    own = folder / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text(source + "\n")
    return str(own)


@pytest.mark.parametrize("option", ["-I", "-E", "-S"])
def test_options_that_shut_the_hook_out(monitor: Monitor, script: Script, option: str) -> None:
    # Under -S no sitecustomize runs. So the hook cannot remove its folder from sys.path.
    bare, hooked = both(monitor, option, script("print('trained')" if option == "-S" else LOOK))
    assert bare == hooked and bare.code == 0


PATHS = (
    *(
        "",
        ":",
        "::",
        ":/nowhere",
        "/nowhere:",
        "/nowhere::/else",
        "/twice:/twice",
        ".",
        "./",
        "..",
        "part",
        "part/",
        "~",
    ),
    *(
        "{folder}",
        "{folder}/",
        "{folder}:",
        "{zip}",
        "{zip}/inner",
        "{link}",
        "{inject}",
        "{inject}/",
        "/x:{inject}:/y",
    ),
)
"""Values that users may have in ``PYTHONPATH``. An empty part is the working directory."""


@pytest.mark.parametrize("options", [[], ["-P"]])
def test_it_leaves_the_path_as_it_would_be(
    monitor: Monitor, script: Script, tmp_path: Path, options: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = tmp_path / "packed.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("inner/sitecustomize.py", "import sys; print('from the archive', sys.path)")
    (tmp_path / "part").mkdir()
    (tmp_path / "link").symlink_to("part")
    look = script(LOOK)
    monkeypatch.chdir(tmp_path)
    places = {"folder": tmp_path, "zip": packed, "link": tmp_path / "link", "inject": INJECT}
    for path in PATHS:
        value = path.format(**places)
        # Only we add the folder of the hook: without us it would be on no path.
        own = ":".join(part for part in value.split(":") if part.rstrip("/") != str(INJECT))
        bare = start(None, *options, look, **({"PYTHONPATH": own} if own else {}))
        assert outcome(bare) == outcome(start(monitor, *options, look, PYTHONPATH=value)), path


@pytest.mark.parametrize("own", [None, "/y"])
@pytest.mark.parametrize("lengthened", ["{0}:/x", "/x:{0}", "{0}::/x", "/x:{cwd}:{0}"])
def test_a_script_lengthens_the_path_of_its_children(
    monitor: Monitor, script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: str | None, lengthened: str
) -> None:
    """An empty part means the working folder. It remains where ``PYTHONPATH`` was empty before."""
    monkeypatch.chdir(tmp_path)
    value = lengthened.format("$PYTHONPATH", cwd=tmp_path)
    look = script(LOOK)
    source = f"import os, sys; os.system(f'PYTHONPATH={value} {{sys.executable}} {look}')"
    bare = start(None, "-c", source, **({} if own is None else {"PYTHONPATH": own}))
    hooked = start(monitor, "-c", source, **({} if own is None else {"PYTHONPATH": own}))
    assert outcome(bare) == outcome(hooked)


def test_what_packages_import_at_the_start_is_not_looked_for_in_the_working_folder(
    monitor: Monitor, script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ``.pth`` files of environments are an example: Python reads them before the hook."""
    venv.create(tmp_path / "venv")
    python = str(tmp_path / "venv" / "bin" / "python")
    (packages,) = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    (packages / "some.pth").write_text("import fractions, enum")
    work = tmp_path / "work"
    work.mkdir()
    for name in ("fractions", "enum"):
        (work / f"{name}.py").write_text("print('the script has it')")
    monkeypatch.chdir(work)
    look = script(LOOK)
    assert outcome(start(None, look, python=python)) == outcome(start(monitor, look, python=python))


@pytest.mark.parametrize("version", ["2.7", "3.4", "3.6", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14"])
def test_it_stands_in_the_way_of_no_python(monitor: Monitor, script: Script, tmp_path: Path, version: str) -> None:
    python = shutil.which(f"python{version}")
    if python is None or outcome(start(None, "-c", "", python=python)).code != 0:
        pytest.skip(f"no Python {version} here")
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.marked = 'mine'\n")
    look = script("import sys; print(sys.marked, sys.path, sorted(sys.flags), 'sitecustomize' in sys.modules)")
    bare = outcome(start(None, look, python=python, PYTHONPATH=str(tmp_path)))
    assert bare == outcome(start(monitor, look, python=python, PYTHONPATH=str(tmp_path)))
    assert "mine" in bare.out and not bare.err


def test_a_mere_search_for_tensorflow_says_nothing(monitor: Monitor, script: Script) -> None:
    search = script("import importlib.util; print(importlib.util.find_spec('tensorflow') is not None)")
    assert run(monitor, search) == (0, "True\n", "")
    assert not monitor.events


def test_of_xla_only_what_was_asked_is_told(monitor: Monitor, script: Script, forks: Forks) -> None:
    source = """
import os, subprocess
os.environ["XLA_FLAGS"] = "--xla_mine=1"
import tensorflow as tf
tf.ones(3)
subprocess.run("env | grep ^XLA_FLAGS", shell=True)
"""
    assert forks.run(monitor, script(source))[:2] == (0, "XLA_FLAGS=--xla_mine=1\n")
    assert monitor.of("initialised") and not monitor.of("xla_cluster")


def broken_tensorflow(folder: Path) -> str:
    package = folder / "packages" / "tensorflow"
    (package / "python").mkdir(parents=True)
    (package / "__init__.py").write_text("from tensorflow.python import broken\n")
    (package / "python" / "__init__.py").touch()
    (package / "python" / "broken.py").write_text("raise ImportError('libcudart.so.12: cannot open')\n")
    return str(package.parent)


def test_a_broken_tensorflow_fails_as_ever(monitor: Monitor, script: Script, tmp_path: Path) -> None:
    bare, hooked = both(monitor, script("import tensorflow"), "one", PYTHONPATH=broken_tensorflow(tmp_path))
    assert bare == hooked and "libcudart" in bare.err
    hello = monitor.wait_for(lambda event: event["type"] == "hook")
    assert hello["argv"][-1] == "one" and hello["executable"] == PYTHON and hello["tensorflow"] is None
    assert hello["python"] == run(None, "-c", "import platform; print(platform.python_version(), end='')").out
    assert monitor.wait_for(lambda event: event["type"] == "hook_end")["reason"] == "exit"


def test_a_broken_installation_of_ours_is_told_to_the_monitor(monitor: Monitor, script: Script, tmp_path: Path) -> None:
    inject = tmp_path / "installed" / "inject"
    shutil.copytree(INJECT, inject)
    packages = broken_tensorflow(tmp_path)
    bare = run(None, script("import tensorflow"), PYTHONPATH=packages)
    hooked = run(
        None, script("import tensorflow"), PYTHONPATH=f"{inject}:{packages}", TFMEMTOP_SOCKET=str(monitor.path)
    )
    assert bare == hooked
    assert monitor.error()["doing"] == "load"


@pytest.mark.parametrize("path", ["/nowhere/hook.sock", "/dev/null", "x" * 300])
def test_no_monitor_is_no_matter(script: Script, tmp_path: Path, path: str) -> None:
    source, packages = script("import tensorflow"), broken_tensorflow(tmp_path)
    hooked = run(None, source, PYTHONPATH=f"{INJECT}:{packages}", TFMEMTOP_SOCKET=path)
    assert hooked == run(None, source, PYTHONPATH=packages)
