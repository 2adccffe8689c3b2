"""The table of layouts agrees with TensorFlow's own headers.

``python -m tests.probe.test_layouts FOLDER…`` prints a row of ``tfmemtop/agent/layouts.py`` for each folder of a
``tensorflow`` package, as a compiler computes it from the headers.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from tfmemtop.agent.layouts import Layout, layout_of


def test_the_row_of_this_tensorflow_is_what_the_compiler_says(tensorflow: tuple[Path, str]) -> None:
    folder, version = tensorflow
    assert layout_of(version) == compiled(folder)


def test_what_is_not_in_the_table_is_not_guessed() -> None:
    assert layout_of("2.22.0-rc0") is not None
    assert [layout_of(version) for version in ("2.15.1", "2.23.0", "2.2.0", "3.21.0", "unknown", "")] == [None] * 6


SOURCE = Path(__file__).with_name("layout.cc")


def compiled(tensorflow: Path) -> Layout:
    """Compute the layout from the headers in the folder *tensorflow*."""
    with tempfile.TemporaryDirectory(prefix="tfmemtop-layout-") as folder:
        program = Path(folder, "layout")
        libraries = [f"-L{tensorflow}", "-l:libtensorflow_framework.so.2", f"-Wl,-rpath,{tensorflow}"]
        flags = ["-std=c++17", "-w", "-DEIGEN_MAX_ALIGN_BYTES=64", f"-I{tensorflow / 'include'}"]
        subprocess.run(["g++", *flags, str(SOURCE), "-o", str(program), *libraries], check=True)
        done = subprocess.run([program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    return Layout(**{name: int(value) for name, value in map(str.split, done.stdout.splitlines())})


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(name, compiled(Path(name)), sep="\n")
