"""Finds the TensorFlow of a process: where its library lies, its version, and whether its layout can be known."""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from tfmemtop.engine.sources.outside.remote import Mapping
from tfmemtop.units import MIB

LIBRARY = "libtensorflow_framework.so"
"""The library that contains the allocators, in all of TensorFlow's own packages."""

_WITHIN_ANOTHER = ("libtensorflow.so", "libtensorflow_cc.so", "_pywrap_tensorflow_internal.so")
_DELETED = " (deleted)"
_VERSION = re.compile(r"\d+\.\d+(\.\d+)?[\w.+-]{0,40}")
_DEFINED = re.compile(r'#define\s+TF_(MAJOR|MINOR|PATCH)_VERSION\s+(\d+)|#define\s+TF_VERSION_SUFFIX\s+"([^"]{0,40})"')
_LARGEST = MIB  # bytes of a file that may name the version
_PACKAGES = 64


class Mapped(NamedTuple):
    """TensorFlow's library in a process: where its first byte lies, and its file as the process sees it."""

    base: int
    path: str
    device: str
    inode: int
    deleted: bool

    @property
    def folder(self) -> str:
        """The folder of the package."""
        return os.path.dirname(self.path)  # noqa: PTH120 (of another process, perhaps elsewhere)


class Named(NamedTuple):
    """The version that is installed where the library lies; ``None`` where nothing there names one."""

    version: str | None
    replaced: bool = False  # the file at that place is not the one in memory, so its version may be another


def mapped(found: Iterable[Mapping]) -> Iterator[Mapped]:
    """Yield each copy of TensorFlow's library; usually there is one."""
    seen = set[tuple[str, int]]()
    for one in found:
        name = one.path.rpartition("/")[2]
        if one.offset == 0 and name.startswith(LIBRARY) and (one.device, one.inode) not in seen:
            seen.add((one.device, one.inode))
            deleted = one.path.endswith(_DELETED)
            yield Mapped(one.start, one.path.removesuffix(_DELETED), one.device, one.inode, deleted)


def built_otherwise(found: Iterable[Mapping]) -> str | None:
    """Return the file of a TensorFlow that is built as a single library; ``None`` if there is none.

    No table has the layout of such a library.
    """
    names = (one.path.removesuffix(_DELETED).rpartition("/")[2] for one in found if one.path)
    return next((name for name in names if name.startswith(_WITHIN_ANOTHER)), None)


def version_of(pid: int, library: Mapped) -> Named:
    """Return the version of the TensorFlow that process *pid* has, by the files beside its library."""
    root = Path(f"/proc/{pid}/root")  # the container's own, if the process is in one
    path = Path(str(root) + library.path)
    try:
        status = path.stat()
        # Overlay file systems show another device in the list of mappings than in the file's status.
        same = status.st_ino == library.inode
    except OSError:
        same = False
    if library.deleted or not same:
        return Named(None, replaced=True)
    return Named(_by_package(path.parent) or _by_headers(path.parent))


def _by_package(folder: Path) -> str | None:
    """Return the version in the metadata of the package to which the folder ``tensorflow`` belongs."""
    try:
        beside = sorted(folder.parent.glob("t*f*.dist-info"))[:_PACKAGES]
    except OSError:
        return None
    named = [name for name in beside if re.match(r"(tensorflow|tf_nightly)(_\w+)?-\d", name.name)]
    for package in named:
        # If there are several, the one that installed the library counts. Its list of files is long.
        if len(named) == 1 or f"{folder.name}/{LIBRARY}" in _read(package / "RECORD"):
            version = re.search(r"^Version: (.+)$", _read(package / "METADATA"), re.MULTILINE)
            if version and _VERSION.fullmatch(version[1].strip()):
                return version[1].strip()
    return None


def _by_headers(folder: Path) -> str | None:
    """Return the version in TensorFlow's own headers, which lie within the package."""
    for name in ("release_version.h", "version.h"):
        parts = dict[str, str]()
        suffix = ""
        for key, number, ending in _DEFINED.findall(_read(folder / "include/tensorflow/core/public" / name)):
            if key:
                parts[key] = number
            else:
                suffix = ending
        if len(parts) == 3:
            return f"{parts['MAJOR']}.{parts['MINOR']}.{parts['PATCH']}{suffix}"
    return None


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_LARGEST * 16 if path.name == "RECORD" else _LARGEST).decode(errors="replace")
    except OSError:
        return ""


def python_of(found: Iterable[Mapping]) -> str:
    """Return the Python version by its library or standard library, as ``3.11``; empty where neither is mapped."""
    for one in found:
        if match := re.search(r"python(3\.\d{1,2})(?=[./t-]|$)", one.path.rpartition("/site-packages")[0] or one.path):
            return match[1]
    return ""
