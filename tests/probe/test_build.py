"""The library is built once for a TensorFlow and kept where no other user can write.

If it cannot be built, one sentence gives the reason.
"""

import json
import os
import re
import shlex
import stat
import sys
from pathlib import Path

import pytest

from tests.probe.cached import Compiler, said
from tests.starting import ran
from tfmemtop.cli import doctor
from tfmemtop.cli.interpreter import Interpreter
from tfmemtop.probe.build import ADDRESSES, build, find_compiler
from tfmemtop.probe.cache import Built

BUILDS = """
import json, sys
from pathlib import Path
from tfmemtop.probe.build import build
print(json.dumps(build(Path(sys.argv[1]))._asdict()))
"""


def command(tensorflow: tuple[Path, str], **variables: str) -> Built:
    """Build in a separate process, as the engine does, but not with the lowest priority."""
    done = ran([sys.executable, "-c", BUILDS, *map(str, tensorflow)], env={**os.environ, **variables}, check=True)
    return Built(**json.loads(done.stdout))


def test_built_once_and_then_found(tensorflow: tuple[Path, str], library: Path, cache: Path) -> None:
    before = library.stat()
    again = command(tensorflow, XDG_CACHE_HOME=str(cache))
    assert (again.state, again.path) == ("built", str(library))
    assert library.stat().st_ino == before.st_ino
    assert stat.S_IMODE(before.st_mode) == 0o600
    assert stat.S_IMODE(library.parent.stat().st_mode) == 0o700
    # Another test may have built for another environment. No file is left half-written.
    whole = re.compile(r"probe-[0-9a-f]{24}-[0-9a-f]{64}\.so")
    assert all(whole.fullmatch(path.name) for path in library.parent.glob("probe-*"))


def test_another_compiler_builds_another(tensorflow: tuple[Path, str], library: Path, compiler: Compiler) -> None:
    first = Path(command(tensorflow, **compiler.variables).path)
    assert first.name != library.name and first.read_bytes() == library.read_bytes()
    command(tensorflow, **compiler.variables)
    assert compiler.built == 1
    first.chmod(0o666)  # any user could have written something else
    command(tensorflow, **compiler.variables)
    assert compiler.built == 2 and stat.S_IMODE(first.stat().st_mode) == 0o600


def test_old_libraries_go(tensorflow: tuple[Path, str], compiler: Compiler) -> None:
    compiler.cache.mkdir(mode=0o755)
    for number in range(20):
        old = compiler.cache / f"probe-{number}.so"
        old.touch()
        os.utime(old, (number, number))
    built = command(tensorflow, **compiler.variables)
    kept = {path.name for path in compiler.cache.glob("probe-*.so")}
    assert Path(built.path).name in kept and len(kept) == 16 and "probe-3.so" not in kept and "probe-19.so" in kept
    assert stat.S_IMODE(compiler.cache.stat().st_mode) == 0o700


def test_no_compiler(tensorflow_folder: Path, library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    built = build(tensorflow_folder)
    assert built.state == "unavailable" and said(built) == ("there is no C++ compiler", "install g++")
    apt = tmp_path / "apt-get"
    apt.touch()
    apt.chmod(0o700)
    assert said(build(tensorflow_folder))[1] == "apt-get install g++"


def test_no_headers_and_no_library(tensorflow_folder: Path, tmp_path: Path) -> None:
    assert "no libtensorflow_framework.so.2" in said(build(tmp_path))[0]
    (tmp_path / "libtensorflow_framework.so.2").symlink_to(tensorflow_folder / "libtensorflow_framework.so.2")
    built = build(tmp_path)
    text, remedy = said(built)
    assert built.state == "unavailable" and "C++ headers" in text and "pip" in remedy


def test_headers_that_do_not_fit(tensorflow_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "libtensorflow_framework.so.2").symlink_to(tensorflow_folder / "libtensorflow_framework.so.2")
    header = tmp_path / "include/tensorflow/core/common_runtime/bfc_allocator.h"
    header.parent.mkdir(parents=True)
    header.touch()
    built = build(tmp_path)
    assert built.state == "failed" and "bfc_allocator.h: No such file" in said(built)[0]
    assert [path.name for path in (tmp_path / "tfmemtop").iterdir()] == ["lock"]


def test_a_tensorflow_that_lacks_something_has_a_probe_without_it(
    tensorflow: tuple[Path, str], library: Path, tmp_path: Path
) -> None:
    """The compiler finds no header of the recorder, and then no log, as if TensorFlow kept them elsewhere.

    What it would make of the rest of the source is checked, not made.
    """
    compiler, compiler_words = tmp_path / "compiler", shlex.join(find_compiler()[0])
    compiler.write_text(
        f"""#!/bin/sh
case "$*" in
    *--version*)
        exec {compiler_words} "$@" ;;
    *-DTFMEMTOP_NO_WINDOWS=1*-DTFMEMTOP_NO_LOG_LINES=1*)
        {compiler_words} "$@" -fsyntax-only || exit
        while [ "$1" != -o ]; do shift; done
        exec cp {shlex.quote(str(library))} "$2" ;;
    *-DTFMEMTOP_NO_WINDOWS=1*)
        echo "probe.cc: undefined reference to 'absl::log_internal::AddLogSink(absl::LogSink*)'" >&2 ;;
    *)
        echo "recorder.h:12: fatal error: traceme_recorder.h: No such file or directory" >&2 ;;
esac
exit 1
"""
    )
    compiler.chmod(0o700)
    built = command(tensorflow, XDG_CACHE_HOME=str(tmp_path), CXX=shlex.quote(str(compiler)))
    assert built.state == "built", built  # and a process has loaded it and read a pool through it


def test_doctor_says_what_is_lost_without_addresses(
    compiler: Compiler, tensorflow: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The probe is in the cache. The compiler refuses the library that finds tensors."""
    folder, version = tensorflow
    assert command(tensorflow, **compiler.variables).state == "built"
    for name, value in compiler.variables.items():
        monkeypatch.setenv(name, value)
    assert build(folder, ADDRESSES).state == "failed"
    python = Interpreter("3.12.1", sys.executable, hook=True, tensorflow=version, folder=str(folder))
    check = doctor.pools(python, doctor.compiler())
    assert check.state is doctor.CheckState.OK and "is in the cache" in check.text and "found by its size" in check.text


def test_a_cache_of_somebody_else(tensorflow_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "tfmemtop").symlink_to(tmp_path / "elsewhere")
    built = build(tensorflow_folder)
    text, remedy = said(built)
    assert built.state == "failed" and "another user" in text and "XDG_CACHE_HOME" in remedy
