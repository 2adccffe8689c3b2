"""Builds a library or a program against one TensorFlow, once: ``python -m tfmemtop.probe.build FOLDER PRODUCT``.

PRODUCT is ``probe``; ``addresses``, the library that finds tensors' buffers; or ``replay``, the program that replays
allocations. They are built one by one: the script waits for the probe only, and TensorFlow's classes of tensors take a
compiler as long as all else.

FOLDER is that of the ``tensorflow`` package. The package is never imported, as it may be for another Python.
The result is one JSON line on stdout: :class:`Built`.
"""

import hashlib
import json
import mmap
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tfmemtop import boot
from tfmemtop.probe.cache import Built, Cache, Library, NotOurs, cache_folder, cache_path, describe

_HERE = Path(__file__).parent

_HEADER = "tensorflow/core/common_runtime/bfc_allocator.h"
_LIBRARY = "libtensorflow_framework.so.2"
_COMPILE_S = 300
_TRIAL_S = 120
_TRIAL_ENVIRONMENT = {
    "CUDA_VISIBLE_DEVICES": "-1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "TF_CPU_ALLOCATOR_USE_BFC": "true",  # the allocator of GPUs, on the CPU
    "TF_CPU_BFC_MEM_LIMIT_IN_MB": "64",
}
_EVERY = (
    *("-std=c++17", "-pthread", "-w", "-DNDEBUG"),
    "-Wl,-z,defs",  # else a missing symbol is found only in the script's process
)
_FLAGS = (
    *(*_EVERY, "-O1", "-fPIC", "-shared", "-fvisibility=hidden"),
    "-Wl,-z,nodelete",  # the library's thread runs on even if the library is closed
)
_PROGRAM_FLAGS = (*_EVERY, "-O2", "-fPIE", "-pie")
_ROOM = 1 << 20  # bytes of disk that a build and its library need at most
_LEFT_OUT = {
    "TFMEMTOP_NO_GPU": "GPUProcessState|GpuIdManager",
    "TFMEMTOP_NO_LOG_LINES": r"log_lines\.h:|LogSink",
    "TFMEMTOP_NO_WINDOWS": r"(chunks|recorder|window|window_calls|steps)\.h:|TraceMe|ProfilerLock",
}
"""What can be left out of the probe, by the macro that does so: an expression for the compiler's messages about it."""
_FEW_HEADERS = "TFMEMTOP_FEW_HEADERS"
_LOCK = re.compile(r"mutable\s+[\w:]+\s+(\w+);\s+RegionManager\s+region_manager_")


class Product(NamedTuple):
    """A thing to build, from the first of ``sources``, which includes the others."""

    name: str
    suffix: str
    sources: tuple[str, ...]
    flags: tuple[str, ...]
    mode: int
    trial: str  # the module that tries it once


_PROBES = (
    *("probe.cc", "calls.h", "chunks.h", "headers.h", "log_lines.h", "looking.h", "pools.h"),
    *("recorder.h", "recording.h", "steps.h", "threads.h", "window.h", "window_calls.h"),
)
PROBE = Product("probe", "so", _PROBES, _FLAGS, 0o600, "tfmemtop.probe.trial")
ADDRESSES = Product("addresses", "so", ("addresses.cc", "looking.h"), _FLAGS, 0o600, PROBE.trial)
_REPLAYS = "replay.cc", "replay_pool.h", "replay_trace.h"
REPLAY = Product("replay", "bin", _REPLAYS, _PROGRAM_FLAGS, 0o700, "tfmemtop.experiments.whatif.trial")
_PRODUCTS = {product.name: product for product in (PROBE, ADDRESSES, REPLAY)}

_MISSING = ("no_framework", "no_headers", "no_compiler")
"""The reasons that the user can remove by installing something."""


class _CannotBuild(Exception):
    """*why* is a value of ``Unbuildable`` in ``events/probe.py``."""

    def __init__(self, why: str, **fields: Any) -> None:
        super().__init__(why, fields)
        self.built = Built("unavailable" if why in _MISSING else "failed", unbuilt={"why": why, **fields})


def build(tensorflow: Path, product: Product = PROBE, begin: Callable[[], None] = lambda: None) -> Built:
    """Return the *product* for the TensorFlow in the folder *tensorflow*, from the cache or newly built.

    *begin* is called before the compiler, which takes a while.
    """
    try:
        library = _find_or_build(product, tensorflow, begin)
    except _CannotBuild as error:
        return error.built
    except OSError as error:
        return Built("failed", unbuilt={"why": "system", "detail": str(error)})
    return Built("built", str(library.path), digest=library.digest, checksum=library.checksum)


def is_cached(tensorflow: Path) -> bool:
    """Return whether :func:`build` would find the probe in the cache.

    Raises:
        OSError: the files of TensorFlow cannot be read.
        _CannotBuild: there is no C++ compiler.
    """
    return _cached(PROBE, tensorflow).find() is not None


def lack_of_addresses(tensorflow: Path) -> str:
    """Return why the last build of the library of addresses failed; empty if it did not, or there was none.

    Raises:
        OSError, _CannotBuild: as :func:`is_cached` raises them.
    """
    failure = _cached(ADDRESSES, tensorflow).failure
    return failure.read_text() if failure.exists() else ""


def _cached(product: Product, tensorflow: Path) -> Cache:
    _, compiler_version = find_compiler()
    key = _key(product, tensorflow / _LIBRARY, compiler_version)
    return Cache(cache_path(), key, product.name, product.suffix)


def _find_or_build(product: Product, tensorflow: Path, begin: Callable[[], None]) -> Library:
    framework = tensorflow / _LIBRARY
    if not framework.is_file():
        raise _CannotBuild("no_framework", file=_LIBRARY)
    if not (tensorflow / "include" / _HEADER).is_file():
        raise _CannotBuild("no_headers")
    compiler, compiler_version = find_compiler()
    key = _key(product, framework, compiler_version)
    try:
        cache = Cache(cache_folder(), key, product.name, product.suffix)
        found = cache.find()
        if found is None:
            with cache.locked():
                return cache.find() or _build(product, cache, compiler, tensorflow, begin)
        cache.sweep()
        return found
    except NotOurs:
        raise _CannotBuild("not_ours", file=str(cache_path())) from None
    except OSError as error:
        raise _CannotBuild("not_kept", file=str(cache_path()), detail=str(error)) from None


def _build(product: Product, cache: Cache, compiler: list[str], tensorflow: Path, begin: Callable[[], None]) -> Library:
    """Build a library, and return it after a trial has loaded it once.

    Raises:
        _CannotBuild: there is no usable library, or one that was built from the same inputs was refused before.
    """
    for mark in cache.refusals():
        raise _refused(mark)
    if not _has_room(cache.folder):
        raise _no_room(cache.folder)
    begin()
    with cache.draft() as draft:
        try:
            made = describe(_compile(product, compiler, tensorflow, Path(draft)))
        except _CannotBuild as error:
            if product is ADDRESSES and error.built.unbuilt is not None:
                cache.failure.write_text(error.built.unbuilt.get("detail") or error.built.unbuilt["why"])
            raise
        _try(product, made, tensorflow)
        return cache.keep(made)


def find_compiler() -> tuple[list[str], str]:
    """Return the C++ compiler's command, and the first line that it prints about its version.

    Raises:
        _CannotBuild: there is no compiler.
    """
    wanted = [shlex.split(os.environ.get("CXX", "")), ["g++"], ["c++"], ["clang++"]]
    for command in wanted:
        if command and shutil.which(command[0]):
            done = subprocess.run([*command, "--version"], capture_output=True, text=True, errors="replace", timeout=60)
            if done.returncode == 0:
                return command, done.stdout.partition("\n")[0]
    raise _CannotBuild("no_compiler", detail=_install_command())


def _key(product: Product, framework: Path, compiler_version: str) -> str:
    found = framework.stat()
    parts = (str(framework), str(found.st_mtime_ns), str(found.st_size), compiler_version, platform.machine())
    digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape"))
    for source in product.sources:
        digest.update((_HERE / source).read_bytes())
    digest.update(repr(product.flags).encode())
    return digest.hexdigest()[:24]


def _compile(product: Product, compiler: list[str], tensorflow: Path, draft: Path) -> Path:
    """Build the library in the folder *draft*, and return its path. Parts that this TensorFlow lacks are left out.

    With few of its headers, the compiler takes a third of the time. Not every release can be compiled so.

    Raises:
        _CannotBuild: the compiler fails, or the disk is full.
    """
    defines = {
        "TFMEMTOP_POOL_LOCK": _pool_lock(tensorflow / "include"),
        "_GLIBCXX_USE_CXX11_ABI": _string_abi(tensorflow / _LIBRARY),
        "EIGEN_MAX_ALIGN_BYTES": "64",  # as TensorFlow's own sysconfig has it
    }
    if product is PROBE:
        defines[_FEW_HEADERS] = "1"
    made = draft / f"{product.name}.{product.suffix}"
    while complaint := _run([*compiler, *_arguments(product, defines, tensorflow, made)], draft):
        _leave_out(complaint, defines, draft)
    made.chmod(product.mode)
    return made


def _leave_out(complaint: str, defines: dict[str, str], draft: Path) -> None:
    """Change the macros so that the part of the probe is left out about which the compiler complains.

    Raises:
        _CannotBuild: there is no such part.
    """
    if re.search("No space left on device|[Qq]uota exceeded", complaint):
        raise _no_room(draft.parent)
    if defines.pop(_FEW_HEADERS, None):
        return
    left_out = [macro for macro, about in _LEFT_OUT.items() if macro not in defines and re.search(about, complaint)]
    if not left_out:
        line = next((line for line in complaint.splitlines() if "error" in line or "undefined" in line), "")
        raise _CannotBuild("does_not_compile", detail=line or complaint[-200:])
    defines |= dict.fromkeys(left_out, "1")


def _try(product: Product, made: Library, tensorflow: Path) -> None:
    """Load the library *made* in a process of its own.

    That process has the user's variables, such as LD_LIBRARY_PATH and LD_PRELOAD, since the script's process has them,
    too.

    Raises:
        _CannotBuild: the trial fails, or takes too long.
    """
    arguments = (tensorflow / _LIBRARY, made.path, made.checksum)
    try:
        done = subprocess.run(
            boot.command(product.trial, *map(str, arguments)),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TRIAL_S,
            env={**os.environ, **_TRIAL_ENVIRONMENT},
        )
    except subprocess.TimeoutExpired:
        # The trial has the lowest priority, on a machine that trains: a slow trial is not the library's fault.
        raise _CannotBuild("trial_slow", count=_TRIAL_S) from None
    if done.returncode == 0:
        return
    if done.returncode < 0:
        raise _CannotBuild("trial_killed", count=-done.returncode)
    told = done.stdout.strip().rpartition("\n")[2]
    try:
        distrust = json.loads(told)
    except ValueError:
        said = told or done.stderr.strip().rpartition("\n")[2]
        raise _CannotBuild("trial_ended", count=done.returncode, detail=said) from None
    raise _CannotBuild("distrusted", trial=distrust)


def _has_room(folder: Path) -> bool:
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize >= _ROOM


def _no_room(folder: Path) -> _CannotBuild:
    return _CannotBuild("no_room", file=str(folder))


def _refused(mark: Path) -> _CannotBuild:
    name = re.search(r"SIG[A-Z]+", mark.read_text())
    return _CannotBuild("refused", file=str(mark), detail=name[0] if name else "")


def _arguments(product: Product, defines: dict[str, str], tensorflow: Path, made: Path) -> list[str]:
    macros = [f"-D{name}={value}" for name, value in defines.items() if value]
    # A program finds this TensorFlow by itself, whatever LD_LIBRARY_PATH contains.
    found = ("--disable-new-dtags", "-rpath", str(tensorflow)) if product is REPLAY else ()
    return [
        *product.flags,
        *macros,
        f"-I{tensorflow / 'include'}",
        str(_HERE / product.sources[0]),
        "-o",
        str(made),
        f"-L{tensorflow}",
        f"-l:{_LIBRARY}",
        *(word for argument in found for word in ("-Xlinker", argument)),
    ]


def _run(command: list[str], draft: Path) -> str | None:
    """Run the compiler; return its error messages, or ``None`` if it succeeds.

    Raises:
        _CannotBuild: the compiler cannot be run, or takes too long.
    """
    environment = {**os.environ, "TMPDIR": str(draft), "LC_ALL": "C"}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_COMPILE_S, env=environment
        )
    except subprocess.TimeoutExpired:
        raise _CannotBuild("compiler_slow", count=_COMPILE_S) from None
    except OSError as error:
        raise _CannotBuild("compiler_failed", detail=str(error)) from None
    return None if done.returncode == 0 else done.stderr or f"{command[0]}: {done.returncode}"


def _pool_lock(include: Path) -> str:
    """Return the name of the allocator's lock in this release; empty if no header has it."""
    for header in ("xla/tsl/framework/bfc_allocator.h", "tsl/framework/bfc_allocator.h", _HEADER):
        try:
            found = _LOCK.search((include / header).read_text(errors="replace"))
        except OSError:
            continue  # a release that keeps it elsewhere
        if found:
            return found[1]
    return ""


def _string_abi(library: Path) -> str:
    """Return which of GCC's two layouts of ``std::string`` the library was built with, as its symbols show."""
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return "1" if content.find(b"_ZNSt7__cxx1112basic_string") >= 0 else "0"


def main(arguments: list[str]) -> int:
    """Build for the folder the product in *arguments*.

    The probe takes some seconds, while the script imports TensorFlow: what the script allocates before is not recorded.
    Anything else is built at the lowest priority.
    """
    folder, name = arguments
    if name != PROBE.name:
        os.nice(19)
    print(json.dumps(build(Path(folder), _PRODUCTS[name])._asdict()))
    return 0


def _install_command() -> str:
    """Return the command that installs a compiler on this system."""
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


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
