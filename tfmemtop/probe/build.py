"""Builds the probe against one TensorFlow, once: ``python -m tfmemtop.probe.build FOLDER VERSION``.

FOLDER is that of the ``tensorflow`` package, which is never imported: it may be of another Python.
The result is one JSON line on stdout: :class:`Built`.
"""

import contextlib
import fcntl
import hashlib
import json
import mmap
import os
import platform
import re
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

SOURCE = Path(__file__).with_name("probe.cc")
_SOURCES = (SOURCE, SOURCE.with_name("map.h"))

_HEADER = "tensorflow/core/common_runtime/bfc_allocator.h"
_LIBRARY = "libtensorflow_framework.so.2"
_COMPILE_S = 300
_KEPT = 16  # libraries in the cache
_FLAGS = ("-std=c++17", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread", "-w", "-DNDEBUG")
_LINK_FLAGS = (
    "-Wl,-z,defs",  # else what is missing shows only in the script's process
    "-Wl,-z,nodelete",  # whoever closes it, its thread runs on
)
_LOCK = re.compile(r"mutable\s+[\w:]+\s+(\w+);\s+RegionManager\s+region_manager_")


class Built(NamedTuple):
    """``state``: ``built``, with the library's ``path``; else why not, in one sentence, and what helps."""

    state: Literal["built", "unavailable", "failed"]
    path: str = ""
    text: str = ""
    remedy: str = ""


class _CannotBuild(Exception):
    def __init__(self, state: Literal["unavailable", "failed"], text: str, remedy: str = "") -> None:
        super().__init__(text)
        self.built = Built(state, "", text, remedy)


def build(tensorflow: Path, version: str) -> Built:
    """The library for the TensorFlow in the folder *tensorflow*, from the cache or newly built."""
    try:
        return Built("built", str(_build(tensorflow, version)))
    except _CannotBuild as error:
        return error.built
    except OSError as error:
        return Built("failed", "", f"the probe could not be built: {error}")


def _build(tensorflow: Path, version: str) -> Path:
    framework = tensorflow / _LIBRARY
    if not framework.is_file():
        raise _CannotBuild("unavailable", f"this TensorFlow has no {_LIBRARY} to read its allocators through")
    if not (tensorflow / "include" / _HEADER).is_file():
        raise _CannotBuild(
            "unavailable", "this TensorFlow came without its C++ headers", "install TensorFlow from its wheel, with pip"
        )
    compiler, compiler_version = find_compiler()
    folder = cache_folder()
    name = _key(version, framework, compiler_version)
    target = folder / f"probe-{name}.so"
    with _locked(folder / "lock"):
        if not _trusted(target):
            _compile(compiler, tensorflow, target)
            _prune(folder)
        os.utime(target)
    return target


def cache_folder() -> Path:
    """Where built libraries are kept, open to this user alone; made if it is missing.

    Raises:
        OSError: it cannot be made, or belongs to somebody else.
    """
    cache = os.environ.get("XDG_CACHE_HOME") or ""
    folder = (Path(cache) if cache.startswith("/") else Path.home() / ".cache") / "tfmemtop"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to somebody else; set XDG_CACHE_HOME to a folder of your own")
    if stat.S_IMODE(found.st_mode) != 0o700:
        folder.chmod(0o700)
    return folder


def find_compiler() -> tuple[list[str], str]:
    """The C++ compiler's command, and what it says of its version."""
    wanted = [shlex.split(os.environ.get("CXX", "")), ["g++"], ["c++"], ["clang++"]]
    for command in wanted:
        if command and shutil.which(command[0]):
            done = subprocess.run([*command, "--version"], capture_output=True, text=True, errors="replace", timeout=60)
            if done.returncode == 0:
                return command, done.stdout.partition("\n")[0]
    raise _CannotBuild("unavailable", "there is no C++ compiler", _install())


def _install() -> str:
    """The command that brings a compiler to this system."""
    managers = {
        "apt-get": "apt-get install g++",
        "dnf": "dnf install gcc-c++",
        "yum": "yum install gcc-c++",
        "zypper": "zypper install gcc-c++",
        "pacman": "pacman -S gcc",
        "apk": "apk add g++",
        "conda": "conda install -c conda-forge gxx",
    }
    return next((command for manager, command in managers.items() if shutil.which(manager)), "install g++")


def _key(version: str, framework: Path, compiler_version: str) -> str:
    found = framework.stat()
    parts = (version, str(framework), str(found.st_mtime_ns), str(found.st_size), compiler_version, platform.machine())
    digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape"))
    for source in _SOURCES:
        digest.update(source.read_bytes())
    digest.update(repr((_FLAGS, _LINK_FLAGS)).encode())
    return digest.hexdigest()[:24]


def _trusted(library: Path) -> bool:
    """Whether it is there, and nobody else could have written it."""
    try:
        found = library.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022


def _compile(compiler: list[str], tensorflow: Path, target: Path) -> None:
    """Build *target*, which is there whole or not at all. What this TensorFlow lacks is left out."""
    defines = dict([_pool_lock(tensorflow / "include")])
    defines["_GLIBCXX_USE_CXX11_ABI"] = _string_abi(tensorflow / _LIBRARY)
    defines["EIGEN_MAX_ALIGN_BYTES"] = "64"  # as TensorFlow's own sysconfig has it
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="build-") as scratch:
        product = Path(scratch, target.name)
        while True:
            complaint = _run([*compiler, *_arguments(defines, tensorflow, product)], scratch)
            if complaint is None:
                break
            if "TFMEMTOP_NO_GPU" not in defines and re.search("GPUProcessState|GpuIdManager", complaint):
                defines["TFMEMTOP_NO_GPU"] = "1"
            elif not defines.pop("TFMEMTOP_POOL_LOCK", None):
                line = next((line for line in complaint.splitlines() if "error" in line or "undefined" in line), "")
                raise _CannotBuild(
                    "failed", f"the probe does not build against this TensorFlow: {line or complaint[-200:]}"
                )
        product.chmod(0o600)
        product.rename(target)


def _arguments(defines: dict[str, str], tensorflow: Path, product: Path) -> list[str]:
    return [
        *_FLAGS,
        *(f"-D{name}={value}" for name, value in defines.items() if value),
        f"-I{tensorflow / 'include'}",
        str(SOURCE),
        "-o",
        str(product),
        f"-L{tensorflow}",
        f"-l:{_LIBRARY}",
        *_LINK_FLAGS,
    ]


def _run(command: list[str], scratch: str) -> str | None:
    """What the compiler complains of, or ``None`` if it is content."""
    environment = {**os.environ, "TMPDIR": scratch, "LC_ALL": "C"}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_COMPILE_S, env=environment
        )
    except subprocess.TimeoutExpired:
        raise _CannotBuild("failed", f"the compiler was not done after {_COMPILE_S} s") from None
    return None if done.returncode == 0 else done.stderr or f"{command[0]} ended with {done.returncode}"


def _pool_lock(include: Path) -> tuple[str, str]:
    """The allocator's lock by the name it has in this release; empty if its headers are otherwise."""
    for header in ("xla/tsl/framework/bfc_allocator.h", "tsl/framework/bfc_allocator.h", _HEADER):
        try:
            found = _LOCK.search((include / header).read_text(errors="replace"))
        except OSError:
            continue  # a release that keeps it elsewhere
        if found:
            return "TFMEMTOP_POOL_LOCK", found[1]
    return "TFMEMTOP_POOL_LOCK", ""


def _string_abi(library: Path) -> str:
    """Which of GCC's two layouts of ``std::string`` the library was built with, seen in its symbols."""
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return "1" if content.find(b"_ZNSt7__cxx1112basic_string") >= 0 else "0"


def _prune(folder: Path) -> None:
    libraries = sorted(folder.glob("probe-*.so"), key=lambda path: path.stat().st_mtime, reverse=True)
    for library in libraries[_KEPT:]:
        library.unlink(missing_ok=True)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One build at a time: a second one finds the first one's library."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def main() -> int:
    """Build for the folder and version on the command line, out of the script's way."""
    os.nice(19)
    built = build(Path(sys.argv[1]), sys.argv[2])
    print(json.dumps(built._asdict()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
