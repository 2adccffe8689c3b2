"""tfmemtop's kernelspecs: folders with a ``kernel.json``, with which Jupyter and VS Code start a kernel.

Their places follow Jupyter's convention (``jupyter --paths``). Jupyter itself is not called: it may be installed in
another environment than tfmemtop.
"""

import errno
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tfmemtop import __version__, boot
from tfmemtop.home import jupyter_folder
from tfmemtop.notebooks.python import Python

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


def connection_file(command: Sequence[str]) -> str | None:
    """Return the connection file in a kernel's command line; ``None`` if *command* starts no kernel."""
    for at, word in enumerate(command):
        if word in ("-f", "--f", "--connection-file", "--IPKernelApp.connection_file") and at + 1 < len(command):
            return command[at + 1]
        for begins in ("--f=", "-f=", "--connection-file=", "--IPKernelApp.connection_file="):
            if word.startswith(begins):
                return word.removeprefix(begins)
    return None


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
