"""Replays the trace of a pool with other settings, in a worker process: a source of one event, the table of results."""

import asyncio
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import msgspec
from msgspec.structs import replace

from tfmemtop import boot
from tfmemtop.events import Replayed, Trace, Unreadable, Unreplayed, decode_event
from tfmemtop.events.machine import is_gpu, is_pinned
from tfmemtop.experiments.session.next_run import COLLECTING
from tfmemtop.experiments.whatif.course import is_complete
from tfmemtop.experiments.whatif.replayer import Question
from tfmemtop.experiments.whatif.settings import Asked
from tfmemtop.findings.missing import only_asked
from tfmemtop.state import State
from tfmemtop.state.lookup import limit_of, of_run
from tfmemtop.state.model import Hooked
from tfmemtop.state.predicted import predicted

WORKER = "tfmemtop.experiments.whatif.worker"
_LONGEST = 500  # characters of the last line that is told


class Traced(msgspec.Struct, frozen=True):
    """A pool whose allocations were recorded from the start, and the question about them for the worker."""

    pid: int
    device: str
    asked: Asked
    parts: tuple[Trace, ...]

    def here(self) -> "Traced | None":
        """Return this pool with a folder of TensorFlow that exists here; ``None`` if there is none.

        It is the folder of the TensorFlow that the process used. If that folder does not exist, it is that of the
        TensorFlow installed beside tfmemtop, if this has the same version.
        """
        if Path(self.asked.tensorflow).is_dir():
            return self
        found = _beside_us(self.asked.version)
        return None if found is None else replace(self, asked=msgspec.structs.replace(self.asked, tensorflow=found))


def traced(state: State) -> Iterator[Traced]:
    """Return all pools in *state* that have a complete trace.

    The pool of pinned memory is left out, since no setting of tfmemtop has an effect on it.
    """
    for pid, process in state.processes.items():
        if hooked := process.hooked:
            for device, windows in hooked.windows.items():
                parts = tuple(windows.trace)
                if is_complete(parts) and not is_pinned(device):
                    version = hooked.hello.tensorflow or ""
                    asked = Asked(hooked.hello.tensorflow_path or "", version, _present(hooked, device), state.now)
                    yield Traced(pid, device, asked, parts)


def unreplayed(state: State) -> list[Traced]:
    """Return the pools in *state* whose trace was not replayed, could not be, or has gone on since."""
    answered = {(view.pid, view.device): view.replayed for view in predicted(state) if not view.replayed.is_missing}
    return [
        pool
        for pool in traced(state)
        if (known := answered.get((pool.pid, pool.device))) is None
        or known.events < sum(part.events for part in pool.parts)
    ]


def still_traced(state: State) -> Iterator[int]:
    """Return the pids of the newest run whose recorded allocations were not read yet, so that none can be replayed."""
    run = state.run
    if run is not None and run.going and not only_asked(state):
        for pid, process in state.processes.items():
            hooked = process.hooked
            if (
                hooked
                and of_run(state, pid)
                and hooked.allocators
                and not any(is_complete(windows.trace) for windows in hooked.windows.values())
            ):
                yield pid


async def ask(pool: Traced) -> Replayed:
    """Run the worker for *pool* and return its answer. If this task is cancelled, the worker is killed."""
    pipe, both = asyncio.subprocess.PIPE, asyncio.subprocess.STDOUT
    worker = await asyncio.create_subprocess_exec(*boot.command(WORKER), stdin=pipe, stdout=pipe, stderr=both)
    try:
        out, _ = await worker.communicate(pool.asked.request(pool.parts))
    finally:
        if worker.returncode is None:
            worker.kill()
    return replace(answer(out), pid=pool.pid, device=pool.device)


def answer(output: bytes) -> Replayed:
    """Return the answer in the worker's *output*, which may lack its process and device."""
    last = output.strip().rpartition(b"\n")[2]
    try:
        event = decode_event(last)
    except Unreadable:
        event = None
    if isinstance(event, Replayed):
        return event
    detail = last.decode(errors="replace")[:_LONGEST]
    return Replayed(t=0.0, pid=0, device="", unreplayed=Unreplayed.NO_ANSWER, detail=detail)


def _beside_us(wanted: str) -> str | None:
    """Return the folder of the TensorFlow that is installed beside tfmemtop, if its version is *wanted*."""
    from importlib.metadata import PackageNotFoundError, version  # imported here, since it takes a while to load

    spec = find_spec("tensorflow")
    if spec is None or spec.origin is None:
        return None
    try:
        return str(Path(spec.origin).parent) if version("tensorflow").replace("rc", "-rc") == wanted else None
    except PackageNotFoundError:
        return None  # the installed package has another name, such as tensorflow-cpu


def _present(hooked: Hooked, device: str) -> Question:
    """Return the question what happens under the setting that *device* has. The limit is ``None`` if it is not known.

    Garbage collection is on for GPUs, unless a variable turns it off.
    """
    limit, effective = limit_of(hooked, device), hooked.effective.get(device)
    if not is_gpu(device):
        return Question(growth=True, collects=False, limit=limit)
    variables = hooked.initialised.variables if hooked.initialised else {}
    collects = variables.get(COLLECTING, "true").lower() not in ("false", "0")
    return Question(bool(effective and effective.growth), collects, limit)
