"""Asks for the table of settings of a pool whose trace is in the state, in a process of its own."""

import asyncio
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tfmemtop import boot
from tfmemtop.events import Replayed, Trace, Unreadable, decode_event
from tfmemtop.events.device_names import is_gpu
from tfmemtop.session.next_run import COLLECTING
from tfmemtop.state import State
from tfmemtop.state.model import Hooked
from tfmemtop.whatif.course import is_complete
from tfmemtop.whatif.settings import Present
from tfmemtop.whatif.worker import Asked, request

_WORKER = "tfmemtop.whatif.worker"


@dataclass(frozen=True, slots=True)
class Traced:
    """A pool whose allocations were recorded from the start, and what is asked of them."""

    pid: int
    device: str
    asked: Asked
    parts: tuple[Trace, ...]

    @property
    def here(self) -> bool:
        """Whether the TensorFlow that it ran on is on this machine."""
        return Path(self.asked.tensorflow).is_dir()


def traced(state: State) -> Iterator[Traced]:
    """All pools in *state* that have a complete trace."""
    for pid, process in state.processes.items():
        if hooked := process.hooked:
            for device, windows in hooked.windows.items():
                parts = tuple(windows.trace)
                if is_complete(parts):
                    version = hooked.hello.tensorflow or ""
                    asked = Asked(hooked.hello.tensorflow_path or "", version, present(hooked, device), state.now)
                    yield Traced(pid, device, asked, parts)


def present(hooked: Hooked, device: str) -> Present:
    """The setting that logical *device* of a process has, as TensorFlow says."""
    effective, reading = hooked.effective.get(device), hooked.allocators.get(device)
    limit = reading.limit if reading and reading.limit else effective.limit if effective else None
    if not is_gpu(device):
        return Present(growth=True, limit=limit, collects=False)
    variables = hooked.initialised.variables if hooked.initialised else {}
    collects = variables.get(COLLECTING, "true").lower() not in ("false", "0")
    return Present(growth=bool(effective and effective.growth), limit=limit, collects=collects)


def ask(pool: Traced) -> Replayed:
    """What the worker answers; waits for it.

    Raises:
        RuntimeError: it gave no answer. The message says why.
    """
    done = subprocess.run(_command(), input=request(pool.asked, pool.parts), capture_output=True, check=False)
    return _answer(done.stdout, done.stderr)


async def ask_later(pool: Traced) -> Replayed:
    """The same beside other tasks. Cancelled, it ends the worker.

    Raises:
        RuntimeError: as :func:`ask`.
    """
    pipe = asyncio.subprocess.PIPE
    worker = await asyncio.create_subprocess_exec(*_command(), stdin=pipe, stdout=pipe, stderr=pipe)
    try:
        out, error = await worker.communicate(request(pool.asked, pool.parts))
    finally:
        if worker.returncode is None:
            worker.kill()
    return _answer(out, error)


def _command() -> list[str]:
    return boot.command(_WORKER)


def _answer(out: bytes, error: bytes) -> Replayed:
    try:
        event = decode_event(out.strip())
    except Unreadable:
        event = None
    if not isinstance(event, Replayed):
        told = error.decode(errors="replace").strip().splitlines()
        raise RuntimeError(told[-1] if told else "the replay gave no answer")
    return event
