"""Replays the recorded allocations of a process under other settings, by a worker process beside the script."""

import asyncio
import tempfile
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from tfmemtop import boot
from tfmemtop.engine.sources.beside import Beside
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
from tfmemtop.whatif.asking import request
from tfmemtop.whatif.settings import present
from tfmemtop.whatif.worker import Asked

_LONGEST_S = 700.0  # for one replay, including the build of the program
_MOST = 8  # pools of one run; also ended processes whose settings are kept


@dataclass(frozen=True)
class _Failed:
    """Why the worker returned no event."""

    why: Unreplayed
    detail: str = ""
    count: int | None = None


class Replays:
    """Publishes :class:`Replayed` for each pool whose trace is complete, one after the other.

    Create it in the running event loop. Its worker has the lowest priority, and ends with this process.
    """

    def __init__(self, stream: Stream) -> None:
        self._loop = asyncio.get_running_loop()
        self._stream = stream
        self._tensorflow: dict[int, tuple[str, str]] = {}  # folder and version, by process
        self._variables: dict[int, dict[str, str]] = {}
        self._effective: dict[tuple[int, str], Effective] = {}
        self._limits: dict[tuple[int, str], int] = {}
        self._parts: dict[tuple[int, str], list[Trace]] = {}
        self._ended: deque[int] = deque()  # ended processes of which something is still kept
        self._waiting: deque[tuple[int, str]] = deque()
        self._begun = 0
        self._worker: Beside | None = None

    @property
    def going(self) -> bool:
        """Whether a trace is being replayed, or waits to be replayed."""
        return self._worker is not None or bool(self._waiting)

    def sessions(self) -> frozenset[int]:
        """Return the process session (``setsid``) of the worker.

        Its processes descend from this one, but do not belong to the script.
        """
        return frozenset(() if self._worker is None else (self._worker.pid,))

    def begin(self) -> None:
        """Start listening to the stream."""
        self._stream.listen(self._take)

    def close(self) -> None:
        """Stop, and end the worker."""
        self._stream.forget(self._take)
        self._waiting.clear()
        if self._worker is not None:
            self._worker.end()

    def _take(self, event: Event) -> None:
        if isinstance(event, Allocator):
            if event.limit:
                self._limits[event.pid, event.device] = event.limit
        elif isinstance(event, Trace):
            self._collect(event)
        elif isinstance(event, Effective):
            self._effective[event.pid, event.device] = event
        elif isinstance(event, Hook) and event.tensorflow and event.tensorflow_path:
            self._tensorflow[event.pid] = event.tensorflow_path, event.tensorflow
        elif isinstance(event, Initialised):
            self._variables[event.pid] = event.variables
        elif isinstance(event, HookEnd):
            # What the process recorded last may still be being read, and is published later.
            self._ended.append(event.pid)
            if len(self._ended) > _MOST:
                self._forget(self._ended.popleft())
        elif isinstance(event, Run):
            self._begun = 0

    def _collect(self, part: Trace) -> None:
        if is_pinned(part.device):
            return  # no setting of tfmemtop changes that pool
        key = part.pid, part.device
        if part.part == 0:
            self._parts[key] = []
        self._parts.setdefault(key, []).append(part)
        if part.last and part.pid in self._tensorflow and self._begun < _MOST:
            self._begun += 1
            self._waiting.append(key)
            self._loop.call_soon(self._next)

    def _next(self) -> None:
        if self._worker is not None or not self._waiting:
            return
        pid, device = self._waiting.popleft()
        parts = self._parts.pop((pid, device), [])
        if not parts or pid not in self._tensorflow:
            self._next()
            return
        now = present(
            device, self._effective.get((pid, device)), self._limits.get((pid, device)), self._variables.get(pid, {})
        )
        asked = Asked(*self._tensorflow[pid], now, self._stream.now())
        try:
            self._worker = _start(self._loop, request(asked, parts), lambda answer: self._done(pid, device, answer))
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

    def _forget(self, pid: int) -> None:
        """Drop what is kept of a process that ended long ago.

        Its TensorFlow is kept if it has a trace that is still to be replayed.
        """
        if not any(key[0] == pid for key in (*self._waiting, *self._parts)):
            self._tensorflow.pop(pid, None)
        self._variables.pop(pid, None)
        for known in (self._effective, self._limits):
            for key in [key for key in known if key[0] == pid]:
                del known[key]


def _start(loop: asyncio.AbstractEventLoop, asked: bytes, done: Callable[[Replayed | _Failed], None]) -> Beside:
    """Start a worker that replays *asked*. *done* receives the event, or why there is none.

    Raises:
        OSError: the worker cannot be started.
    """

    def answered(output: bytes | None) -> None:
        done(_Failed(Unreplayed.SLOW, "", round(_LONGEST_S)) if output is None else _parse(output))

    with tempfile.TemporaryFile() as file:
        file.write(asked)
        file.seek(0)
        return Beside(loop, boot.command("tfmemtop.whatif.worker"), _LONGEST_S, answered, file)


def _parse(output: bytes) -> Replayed | _Failed:
    last = output.strip().rpartition(b"\n")[2]
    try:
        event = decode_event(last)
    except Unreadable:
        event = None
    if isinstance(event, Replayed):
        return event
    return _Failed(Unreplayed.NO_ANSWER, last.decode(errors="replace")[:500])
