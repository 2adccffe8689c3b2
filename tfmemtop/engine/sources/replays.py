"""Replays the recorded allocations of a process under other settings, by a worker process beside the script."""

import asyncio
import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from tfmemtop import boot
from tfmemtop.engine.sources.helper_process import HelperProcess
from tfmemtop.engine.sources.source import Source
from tfmemtop.engine.stream.stream import Stream
from tfmemtop.events import (
    Allocator,
    Effective,
    Event,
    Hook,
    HookEnd,
    Initialised,
    Replayed,
    Run,
    Trace,
    Unreadable,
    Unreplayed,
    decode_event,
)
from tfmemtop.events.device_names import is_pinned
from tfmemtop.experiments.whatif.settings import Asked, present

_LONGEST_S = 700.0  # for one replay, including the build of the program
_MOST = 8  # pools of one run; also ended processes of which something is kept


@dataclass(frozen=True)
class _Failed:
    """Why the worker returned no event."""

    why: Unreplayed
    detail: str = ""
    count: int | None = None


@dataclass(slots=True)
class _Process:
    """What is known of a process that has a hook. The dictionaries are by device."""

    tensorflow: tuple[str, str] | None = None  # folder and version
    variables: dict[str, str] = field(default_factory=dict)
    effective: dict[str, Effective] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)
    parts: dict[str, list[Trace]] = field(default_factory=dict)  # of a trace that is not complete, or waits
    ended: bool = False


class Replays(Source):
    """Publishes :class:`Replayed` for each pool whose trace is complete, one after the other.

    Create it in the running event loop. Its worker has the lowest priority, and ends with this process.
    """

    def __init__(self, stream: Stream) -> None:
        self._loop = asyncio.get_running_loop()
        super().__init__(stream)
        self._processes: dict[int, _Process] = {}  # those that ended last are at the end
        self._waiting: deque[tuple[int, str]] = deque()
        self._begun = 0
        self._worker: HelperProcess | None = None

    @property
    def going(self) -> bool:
        """Whether a trace is being replayed, or waits to be replayed."""
        return self._worker is not None or bool(self._waiting)

    def sessions(self) -> frozenset[int]:
        """Return the process session (``setsid``) of the worker.

        Its processes descend from this one, but do not belong to the script.
        """
        return frozenset(() if self._worker is None else (self._worker.pid,))

    def close(self) -> None:
        """Stop, and end the worker."""
        super().close()
        self._waiting.clear()
        if self._worker is not None:
            self._worker.end()

    def on_event(self, event: Event) -> None:
        """Handle an event of the stream."""
        if isinstance(event, Hook):
            process = self._processes.setdefault(event.pid, _Process())
            process.ended = False
            if event.tensorflow and event.tensorflow_path:
                process.tensorflow = event.tensorflow_path, event.tensorflow
        elif isinstance(event, HookEnd):
            self._end(event.pid)
        elif isinstance(event, Run):
            self._begun = 0
        elif isinstance(event, Allocator | Effective | Initialised | Trace) and event.pid in self._processes:
            self._learn(self._processes[event.pid], event)

    def _learn(self, process: _Process, event: Allocator | Effective | Initialised | Trace) -> None:
        if isinstance(event, Allocator):
            if event.limit:
                process.limits[event.device] = event.limit
        elif isinstance(event, Effective):
            process.effective[event.device] = event
        elif isinstance(event, Initialised):
            process.variables = event.variables
        elif not is_pinned(event.device):  # no setting of tfmemtop changes that pool
            self._collect(process, event)

    def _collect(self, process: _Process, part: Trace) -> None:
        if part.part == 0:
            process.parts[part.device] = []
        process.parts.setdefault(part.device, []).append(part)
        if not part.last:
            return
        if process.tensorflow is None or self._begun >= _MOST:
            del process.parts[part.device]
            return
        self._begun += 1
        self._waiting.append((part.pid, part.device))
        self._loop.call_soon(self._next)

    def _next(self) -> None:
        if self._worker is not None or not self._waiting:
            return
        pid, device = self._waiting.popleft()
        process = self._processes[pid]
        parts = process.parts.pop(device, [])
        if not parts or process.tensorflow is None:
            self._next()
            return
        now = present(device, process.effective.get(device), process.limits.get(device), process.variables)
        asked = Asked(*process.tensorflow, now, self._stream.now())
        self._forget()
        try:
            self._worker = _start(self._loop, asked.request(parts), lambda answer: self._done(pid, device, answer))
        except OSError as error:
            self._done(pid, device, _Failed(Unreplayed.NOT_STARTED, str(error)))

    def _done(self, pid: int, device: str, answer: "Replayed | _Failed") -> None:
        self._worker = None
        t = self._stream.now()
        if isinstance(answer, _Failed):
            answer = Replayed(
                t=t, pid=pid, device=device, unreplayed=answer.why, detail=answer.detail, count=answer.count
            )
        self._stream.publish(answer)
        self._loop.call_soon(self._next)

    def _end(self, pid: int) -> None:
        """Note that a process has ended. What it recorded last may still be being read, and is published later."""
        process = self._processes.pop(pid, None)
        if process is not None:
            process.ended = True
            self._processes[pid] = process
            self._forget()

    def _forget(self) -> None:
        """Drop what is kept of processes that ended long ago and have no trace that waits to be replayed."""
        waiting = {pid for pid, _ in self._waiting}
        ended = [pid for pid, process in self._processes.items() if process.ended]
        for pid in ended[:-_MOST]:
            if pid not in waiting:
                del self._processes[pid]


def _start(loop: asyncio.AbstractEventLoop, asked: bytes, done: Callable[[Replayed | _Failed], None]) -> HelperProcess:
    """Start a worker that replays *asked*. *done* receives the event, or why there is none.

    Raises:
        OSError: the worker cannot be started.
    """

    def answered(output: bytes | None) -> None:
        done(_Failed(Unreplayed.SLOW, "", round(_LONGEST_S)) if output is None else _parse(output))

    with os.fdopen(os.memfd_create("tfmemtop-replay"), "w+b") as file:
        file.write(asked)
        file.seek(0)
        return HelperProcess(loop, boot.command("tfmemtop.experiments.whatif.worker"), _LONGEST_S, answered, file)


def _parse(output: bytes) -> Replayed | _Failed:
    last = output.strip().rpartition(b"\n")[2]
    try:
        event = decode_event(last)
    except Unreadable:
        event = None
    if isinstance(event, Replayed):
        return event
    return _Failed(Unreplayed.NO_ANSWER, last.decode(errors="replace")[:500])
