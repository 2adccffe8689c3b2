"""Replays the recorded allocations of a process under other settings, by a worker process beside the script."""

import asyncio
import os
from collections import deque
from collections.abc import Callable

import msgspec

from tfmemtop import boot
from tfmemtop.engine.sources.source import HelperProcess, Source
from tfmemtop.engine.stream.stream import Stream
from tfmemtop.events import (
    Allocator,
    Effective,
    Event,
    Hook,
    Initialised,
    Replayed,
    Run,
    Trace,
    Unreadable,
    Unreplayed,
    decode_event,
)
from tfmemtop.events.device_names import is_pinned

_LONGEST_S = 700.0  # for one replay, including the build of the program
_MOST = 8  # pools of one run


class Replays(Source):
    """Publishes :class:`Replayed` for each pool whose trace is complete, one after the other.

    Create it in the running event loop. Its worker has the lowest priority, and ends with this process.
    """

    def __init__(self, stream: Stream) -> None:
        self._loop = asyncio.get_running_loop()
        super().__init__(stream)
        self._waiting: deque[tuple[int, str, bytes]] = deque()  # process, device, and what the worker is asked
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
        if isinstance(event, Run):
            self._begun = 0
        elif isinstance(event, Trace) and event.last and self._begun < _MOST and not is_pinned(event.device):
            # No setting of tfmemtop changes a pinned pool.
            request = self._request(event.pid, event.device)
            if request is not None:
                self._begun += 1
                self._waiting.append((event.pid, event.device, request))
                self._loop.call_soon(self._next)

    def _request(self, pid: int, device: str) -> bytes | None:
        """Return what the worker is asked about a trace; ``None`` if it is not known which TensorFlow to use."""
        from tfmemtop.experiments.whatif.settings import Asked, present  # it takes a while to load

        tensorflow: tuple[str, str] | None = None  # folder and version
        effective: Effective | None = None
        limit: int | None = None
        variables: dict[str, str] = {}
        parts: list[Trace] = []
        for event in self._stream.backlog.events():
            if isinstance(event, Hook) and event.pid == pid and event.tensorflow and event.tensorflow_path:
                tensorflow = event.tensorflow_path, event.tensorflow
            elif isinstance(event, Initialised) and event.pid == pid:
                variables = event.variables
            elif isinstance(event, Allocator | Effective | Trace) and (event.pid, event.device) == (pid, device):
                if isinstance(event, Allocator):
                    limit = event.limit or limit
                elif isinstance(event, Effective):
                    effective = event
                else:
                    parts = [event] if event.part == 0 else [*parts, event]
        if tensorflow is None:
            return None
        return Asked(*tensorflow, present(device, effective, limit, variables), self._stream.now()).request(parts)

    def _next(self) -> None:
        if self._worker is not None or not self._waiting:
            return
        pid, device, request = self._waiting.popleft()
        try:
            self._worker = _start(self._loop, request, lambda answer: self._done(answer, pid, device))
        except OSError as error:
            self._done(_without(Unreplayed.NOT_STARTED, str(error)), pid, device)

    def _done(self, answer: Replayed, pid: int, device: str) -> None:
        self._worker = None
        self._stream.publish(msgspec.structs.replace(answer, t=self._stream.now(), pid=pid, device=device))
        self._loop.call_soon(self._next)


def _start(loop: asyncio.AbstractEventLoop, asked: bytes, done: Callable[[Replayed], None]) -> HelperProcess:
    """Start a worker that replays *asked*. *done* receives its answer.

    Raises:
        OSError: the worker cannot be started.
    """
    with os.fdopen(os.memfd_create("tfmemtop-replay"), "w+b") as file:
        file.write(asked)
        file.seek(0)
        command = boot.command("tfmemtop.experiments.whatif.worker")
        return HelperProcess(loop, command, _LONGEST_S, lambda output: done(_parse(output)), file)


def _parse(output: bytes | None) -> Replayed:
    if output is None:
        return _without(Unreplayed.SLOW, count=round(_LONGEST_S))
    last = output.strip().rpartition(b"\n")[2]
    try:
        event = decode_event(last)
    except Unreadable:
        event = None
    return event if isinstance(event, Replayed) else _without(Unreplayed.NO_ANSWER, last.decode(errors="replace")[:500])


def _without(why: Unreplayed, detail: str = "", count: int | None = None) -> Replayed:
    """Return an answer without a table, still without time, process and device."""
    return Replayed(t=0.0, pid=0, device="", unreplayed=why, detail=detail, count=count)
