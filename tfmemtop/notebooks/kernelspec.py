"""tfmemtop's kernelspecs: folders with a ``kernel.json``, with which Jupyter and VS Code start a kernel.

Their places follow Jupyter's convention (``jupyter --paths``). Jupyter itself is not called: it may be installed in
another environment than tfmemtop. Also here: whether the user's Python can run kernels.
"""

import errno
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tfmemtop import __version__, boot
from tfmemtop.failure import Refusal
from tfmemtop.home import jupyter_folder

_OLDEST = (3, 9)
"""The oldest Python that the hook supports."""
_PATIENCE_S = 60.0
_ASK_PYTHON = """
import json, os, sys
try:
    import ipykernel.kernelspec as kernelspec
    found = [kernelspec.get_kernel_dict(), kernelspec.RESOURCES]
except ImportError:
    found = None
print(json.dumps([list(sys.version_info[:2]), found]))
"""


class UnfitPython(Refusal):
    """No kernel can run in a Python. The message has the reason, and what helps."""


class Python(NamedTuple):
    """A Python with ipykernel: the ``kernel.json`` that its ipykernel would write, and the folder of the logos."""

    kernel: dict[str, Any]
    pictures: Path


def examine_python(given: Path | None) -> Python:
    """Run the Python *given*, or else ``python`` or ``python3`` on ``PATH``, and return what its ipykernel reports.

    Raises:
        UnfitPython: there is no such Python, or no kernel can run in it.
    """
    named = str(given) if given is not None else shutil.which("python") or shutil.which("python3")
    if named is None:
        raise UnfitPython("there is no python in PATH; name one: tfmemtop kernel install --python FILE")
    # The link is not resolved: a Python belongs to a virtual environment only if it is started by the link in it.
    path = named if "/" not in named else os.path.abspath(named)  # noqa: PTH100 (which keeps links too, but not "..")
    try:
        asked = subprocess.run(
            [path, "-c", _ASK_PYTHON], capture_output=True, text=True, timeout=_PATIENCE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnfitPython(f"{named} does not run: {getattr(error, 'strerror', None) or error}") from None
    try:
        version, ipykernel = json.loads(asked.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError):
        last = asked.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        raise UnfitPython(f"{named} does not run: {last[0]}") from None
    if tuple(version) < _OLDEST:
        raise UnfitPython(f"{named} is Python {'.'.join(map(str, version))}; tfmemtop watches 3.9 and newer")
    if ipykernel is None:
        raise UnfitPython(f"{named} has no ipykernel; install it: {shlex.quote(named)} -m pip install ipykernel")
    kernel, pictures = ipykernel
    return Python(kernel, Path(pictures))


_MARK = "tfmemtop"  # the key in the metadata that marks a kernelspec of ours
_ENV = "/usr/bin/env"  # replaces itself by the program in its arguments
_NAME = re.compile(r"[A-Za-z0-9._-]+")  # the names that Jupyter allows
_PLAIN_PYTHON = re.compile(r"python\d*.?\d*")  # the names that VS Code takes for those of plain Pythons


class NotOurs(FileExistsError):
    """The folder ``filename`` has a kernelspec of that name already, and tfmemtop did not write it."""


class Kernelspec(NamedTuple):
    """A kernelspec that tfmemtop has written. ``python`` is the interpreter that its kernels run in."""

    name: str
    display_name: str
    python: str
    folder: Path


def is_name(text: str) -> bool:
    """Return whether *text* is a valid name for a kernelspec."""
    return _NAME.fullmatch(text) is not None


def hidden_by_vs_code(name: str, display_name: str) -> bool:
    """Return whether VS Code does not list such a kernelspec, because it takes it for that of a plain Python."""
    return _PLAIN_PYTHON.fullmatch(name) is not None or display_name.startswith("Python 3")


def user_folder() -> Path:
    """Return the user's folder of kernelspecs."""
    return jupyter_folder() / "kernels"


def folder_under(prefix: Path) -> Path:
    """Return the folder of kernelspecs of the environment or installation *prefix*."""
    return prefix.absolute() / "share" / "jupyter" / "kernels"


def write(folder: Path, name: str, display_name: str, python: Python, options: Sequence[str]) -> Path:
    """Write the kernelspec *name* into *folder*, and return the path of its ``kernel.json``.

    A kernelspec of that name that tfmemtop has written is replaced. The new one is that of *python*'s own ipykernel,
    except that tfmemtop starts its kernels. The *options* of a run apply to each of them.

    If the first word of the command is a Python, VS Code replaces it by a Python of its own choice, which would then
    run our modules. So the first word is ``env``. The metadata contain the Python that the kernels run in, in the form
    that VS Code itself writes.

    Raises:
        NotOurs: *folder* has a kernelspec of that name that tfmemtop did not write.
        OSError: a file cannot be written.
    """
    place = folder / name
    path = place / "kernel.json"
    if path.exists() and _read(place) is None:
        raise NotOurs(errno.EEXIST, os.strerror(errno.EEXIST), str(place))
    argv = python.kernel["argv"]
    spec = python.kernel | {
        "argv": [_ENV, *boot.command("tfmemtop.cli.main", "kernel", "start", *options, "--"), *argv],
        "display_name": display_name,
        "metadata": python.kernel.get("metadata", {})
        | {_MARK: {"version": __version__, "python": argv[0]}, "interpreter": {"path": argv[0]}},
    }
    place.mkdir(parents=True, exist_ok=True)
    for picture in python.pictures.glob("logo-*"):
        shutil.copyfile(picture, place / picture.name)
    new = place / "kernel.json.new"
    new.write_text(json.dumps(spec, indent=1) + "\n", "utf-8")
    new.replace(path)
    return path


def installed() -> Iterator[Kernelspec]:
    """Yield the kernelspecs of tfmemtop that Jupyter finds with this environment, in Jupyter's order."""
    seen: set[Path] = set()
    for folder in _folders():
        for place in sorted(folder.iterdir()) if folder.is_dir() else ():
            spec = _read(place)
            if spec is not None and place.resolve() not in seen:
                seen.add(place.resolve())
                yield spec


def remove(spec: Kernelspec) -> None:
    """Remove the folder of the kernelspec.

    Raises:
        OSError: the folder cannot be removed.
    """
    shutil.rmtree(spec.folder)


def _folders() -> list[Path]:
    given = os.environ.get("JUPYTER_PATH", "").split(os.pathsep)
    folders = [Path(part, "kernels") for part in given if part] + [user_folder()]
    prefixes = [os.environ.get("VIRTUAL_ENV"), os.environ.get("CONDA_PREFIX"), sys.prefix, "/usr/local", "/usr"]
    return list(dict.fromkeys([*folders, *(folder_under(Path(prefix)) for prefix in prefixes if prefix)]))


def _read(place: Path) -> Kernelspec | None:
    """Return the kernelspec in the folder *place*; ``None`` if there is none, or tfmemtop did not write it."""
    try:
        spec = json.loads((place / "kernel.json").read_bytes())
        ours = spec["metadata"][_MARK]
        return Kernelspec(place.name, str(spec["display_name"]), str(ours["python"]), place)
    except (OSError, ValueError, KeyError, TypeError):
        return None
