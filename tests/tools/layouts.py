"""``python -m tests.tools.layouts FOLDER…``: a row of ``tfmemtop/agent/layouts.py`` for a TensorFlow.

It is printed for each folder of a ``tensorflow`` package, as a compiler computes it from the headers.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from tfmemtop.agent.layouts import Layout

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
