"""Kernelspecs of ours: folders with a ``kernel.json``, by which Jupyter and VS Code start a kernel.

Where they lie is Jupyter's convention (``jupyter --paths``), which is followed without Jupyter: it may be installed in
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
from tfmemtop.notebooks.python import Python

_MARK = "tfmemtop"  # of the metadata of ours
_ENV = "/usr/bin/env"  # becomes the program that it is given
_NAME = re.compile(r"[A-Za-z0-9._-]+")  # as Jupyter allows


class NotOurs(FileExistsError):
    """A kernelspec of that name is there, in the folder ``filename``, and is not of tfmemtop."""


class Kernelspec(NamedTuple):
    """A kernelspec of ours. ``python`` is the interpreter that its kernels run in."""

    name: str
    display_name: str
    python: str
    folder: Path


def is_name(text: str) -> bool:
    """Whether a kernelspec may have this name."""
    return _NAME.fullmatch(text) is not None


def user_folder() -> Path:
    """The user's folder of kernelspecs."""
    if given := os.environ.get("JUPYTER_DATA_DIR"):
        return Path(given, "kernels")
    share = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(share, "jupyter", "kernels")


def folder_under(prefix: Path) -> Path:
    """The folder of kernelspecs of an environment or installation."""
    return prefix.absolute() / "share" / "jupyter" / "kernels"


def write(folder: Path, name: str, display_name: str, python: Python, options: Sequence[str]) -> Path:
    """Write the kernelspec *name* into *folder*, over one of ours; its ``kernel.json``.

    It is that of the *python*'s own ipykernel, whose kernels are started by us. The *options* of a run are for each.

    VS Code puts a Python of its own choice in the place of a first word that is one, and runs our modules with it. So
    the first word is ``env``, and the metadata say which Python it is that the kernels run in, as VS Code writes them.

    Raises:
        NotOurs: there is one of that name that is not ours.
        OSError: it cannot be written.
    """
    place = folder / name
    path = place / "kernel.json"
    if path.exists() and _read(place) is None:
        raise NotOurs(errno.EEXIST, os.strerror(errno.EEXIST), str(place))
    argv = python.kernel["argv"]
    spec = python.kernel | {
        "argv": [_ENV, *boot.command("tfmemtop.cli", "kernel", "start", *options, "--"), *argv],
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
    """Those of ours that Jupyter finds from here, by its order."""
    seen: set[Path] = set()
    for folder in _folders():
        for place in sorted(folder.iterdir()) if folder.is_dir() else ():
            spec = _read(place)
            if spec is not None and place.resolve() not in seen:
                seen.add(place.resolve())
                yield spec


def remove(spec: Kernelspec) -> None:
    """Remove it.

    Raises:
        OSError: it cannot be removed.
    """
    shutil.rmtree(spec.folder)


def connection_file(command: Sequence[str]) -> str | None:
    """The connection file that is given to a kernel; ``None`` if *command* starts none."""
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
    """The kernelspec in the folder *place*; ``None`` if there is none, or it is not ours."""
    try:
        spec = json.loads((place / "kernel.json").read_bytes())
        ours = spec["metadata"][_MARK]
        return Kernelspec(place.name, str(spec["display_name"]), str(ours["python"]), place)
    except (OSError, ValueError, KeyError, TypeError):
        return None
