"""Requests windows of allocations for findings: they show which holders grow, and which keep a pool in pieces.

It follows the stream as a screen does, so that there are such windows without a screen too. It begins with the first
window of a session: where there is no window of the start, there can be none for a finding either. The findings are
computed in a thread of their own, since the readings must not wait.
"""

import asyncio
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from tfmemtop.engine.sources.source import Source
from tfmemtop.engine.stream.complaints import complain
from tfmemtop.engine.stream.stream import Stream
from tfmemtop.events import Event, Holders, NoticeKind, Output, Trace

if TYPE_CHECKING:
    from tfmemtop.findings.leaks import WindowWishes

LOOK_S = 5.0
"""Seconds between two looks."""


class Sender(Protocol):
    """Sends commands to the hooks of a process."""

    def send(self, pid: int, command: dict[str, Any]) -> bool: ...


class FindingWindows(Source):
    """Requests a window from the hooks of a process where it would make a finding more precise.

    Create it in the running event loop.
    """

    def __init__(self, stream: Stream, hooks: Sender) -> None:
        super().__init__(stream)
        self._hooks = hooks
        self._loop = asyncio.get_running_loop()
        self._thread: ThreadPoolExecutor | None = None
        self._events: list[Event] = []
        self._look_at: asyncio.TimerHandle | None = None
        self._wishes: WindowWishes | None = None  # used in the thread only

    def close(self) -> None:
        """Stop."""
        super().close()
        if self._look_at is not None:
            self._look_at.cancel()
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)

    def on_event(self, event: Event) -> None:
        """Handle an event of the stream."""
        if self._thread is None:
            if isinstance(event, Holders) and not event.is_missing:
                self._thread = ThreadPoolExecutor(1, "findings")
                self._events = [kept for kept in self._stream.backlog.events() if _matters(kept)]
                self._look_at = self._loop.call_later(LOOK_S, self._look)
        elif _matters(event):
            self._events.append(event)

    def _look(self) -> None:
        assert self._thread is not None
        events, self._events = self._events, []
        self._thread.submit(self._wanted, events).add_done_callback(self._wake)

    def _wake(self, future: "Future[list[int]]") -> None:
        with suppress(RuntimeError):  # the loop has ended, and with it the session
            self._loop.call_soon_threadsafe(self._ask, future)

    def _ask(self, future: "Future[list[int]]") -> None:
        if future.cancelled():
            return
        try:
            wanted = future.result()
        except Exception as error:
            complain()
            self.close()
            detail = f"{type(error).__name__}: {error}"
            self._stream.notice("windows", NoticeKind.FINDINGS_WITHOUT_WINDOWS, detail=detail)
            return
        for pid in wanted:
            self._hooks.send(pid, {"do": "holders", "finding": True})
        self._look_at = self._loop.call_later(LOOK_S, self._look)

    # This runs in the thread:

    def _wanted(self, events: list[Event]) -> list[int]:
        if self._wishes is None:
            from tfmemtop.findings.leaks import WindowWishes  # imported here, as most sessions do not need it

            self._wishes = WindowWishes()
        return self._wishes.due(events)


def _matters(event: Event) -> bool:
    return not isinstance(event, Output | Trace)  # megabytes that no rule uses
