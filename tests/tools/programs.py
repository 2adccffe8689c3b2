"""Records a step of each program of ``tests/scripts/programs.py``: ``python -m tests.tools.programs [NAME…]``.

The recordings are those of ``tests/state/real_windows``: the last step that was recorded, and what the hook knew of the
variables and tensors then. Of ``dense``, all windows are kept in ``tests/state/recorded_windows`` as well. ``leak`` is
``tests/scripts/windows/leak.py`` in a pool of 128 MiB, whole, in ``tests/recordings/windows``. With ``gpu``, the
programs of ``tests/scripts/gpu`` are recorded on a GPU, for ``tests/state/gpu_windows``.
"""

import getpass
import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tfmemtop import events
from tfmemtop.events import recording
from tfmemtop.state import State, apply
from tfmemtop.state.located import sources

_TESTS = Path(__file__).parents[1]
_PROGRAMS = _TESTS / "scripts" / "programs.py"
_PID = 100
_OPTIONS = ("--cpu-pool", "512M", "--holders-interval", "2")
_ON_A_GPU = {
    "resnet": ((), ("resnet.py", "off", "20")),
    "resnet-xla": (("--xla-report",), ("resnet.py", "auto", "40")),
    "transformer": ((), ("transformer.py", "20")),
}
"""Options of ``tfmemtop record``, and the program with its arguments."""


def record(name: str, options: Sequence[str], program: Sequence[str], folder: Path) -> list[events.Event]:
    """Run a program with Python, and return what was recorded of it.

    Raises:
        CalledProcessError: it failed.
    """
    path = folder / f"{name}.jsonl"
    command = ["tfmemtop", "record", *options, "-o", str(path), "--", sys.executable, *program]
    subprocess.run(command, check=True)
    return list(recording.read(path).events())


def last_step(stream: list[events.Event], device: str) -> list[events.Event]:
    """Return the last window of *device* with a whole step, and the censuses that are nearest to it."""
    state = State()
    for event in stream:
        apply(state, event)
    (hooked,) = [process.hooked for process in state.processes.values() if process.hooked]
    windows = [one for one in hooked.windows[device].newest if one.steps]
    window = windows[-1]
    known = sources(window, hooked)
    chosen = [*hooked.clusters.values(), window, *known.censuses, known.look]
    return [event for event in stream if any(event is one for one in chosen)]


def write(stream: list[events.Event], path: Path) -> None:
    """Write *stream* to *path*, as if it came from the process of the tests."""
    path.parent.mkdir(exist_ok=True)
    moved = [msgspec.structs.replace(event, pid=_PID) for event in stream]
    path.write_bytes(b"".join(events.encode(event) + b"\n" for event in moved))


def record_leak(folder: Path) -> bytes:
    """Run the leak in *folder* until it fails, and return the recording without this machine's paths and user."""
    script = folder / "leak.py"
    script.write_bytes((_TESTS / "scripts" / "windows" / "leak.py").read_bytes())
    pool = {"TF_CPU_ALLOCATOR_USE_BFC": "true", "TF_CPU_BFC_MEM_LIMIT_IN_MB": "128"}
    command = ["tfmemtop", "record", "-o", "leak.jsonl", "--", "python", "leak.py"]
    subprocess.run(command, cwd=folder, env={**os.environ, **pool})
    text = (folder / "leak.jsonl").read_text()
    tensorflow = Path(importlib.util.find_spec("tensorflow").origin).parents[4]  # type: ignore[union-attr, arg-type]
    for path, shown in ((sys.prefix, "/home/ada/venv"), (tensorflow, "/home/ada/venv"), (folder, "/home/ada")):
        text = text.replace(str(path), shown)
    return text.replace(f'"user":"{getpass.getuser()}"', '"user":"ada"').encode()


def main(names: list[str]) -> None:
    """Record the programs with these *names*, all of ``programs.py`` if there are none."""
    folder = _TESTS / "state"
    if names == ["gpu"]:
        for name, (options, program) in _ON_A_GPU.items():
            program = (str(_TESTS / "scripts" / "gpu" / program[0]), *program[1:])
            with tempfile.TemporaryDirectory() as made:
                stream = record(name, ("--growth", "on", "--holders-interval", "5", *options), program, Path(made))
            write(last_step(stream, "GPU:0"), folder / "gpu_windows" / f"{name}.jsonl")
        return
    for name in names or sorted(path.stem for path in (folder / "real_windows").glob("*.jsonl")):
        with tempfile.TemporaryDirectory() as made:
            if name == "leak":
                (_TESTS / "recordings" / "windows" / "leak.jsonl").write_bytes(record_leak(Path(made)))
                continue
            stream = record(name, _OPTIONS, (str(_PROGRAMS), name), Path(made))
        write(last_step(stream, "CPU:0"), folder / "real_windows" / f"{name}.jsonl")
        if name == "dense":
            kept: list[events.Event] = [event for event in stream if isinstance(event, events.Census | events.Holders)]
            write(kept, folder / "recorded_windows" / f"{name}.jsonl")


if __name__ == "__main__":
    main(sys.argv[1:])
