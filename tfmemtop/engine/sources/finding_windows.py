"""Requests windows of allocations for findings: they show which holders grow, and which keep a pool in pieces.

It follows the stream as a screen does, so that there are such windows without a screen too. It begins with the first
window of a session: where there is no window of the start, there can be none for a finding either. The findings are
computed in a thread of their own, since the readings must not wait.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from tfmemtop.engine.sources.source import Sender, Source
from tfmemtop.engine.stream.complaints import complain
from tfmemtop.engine.stream.stream import Stream
from tfmemtop.events import Event, Holders, NoticeKind, Output, Trace

if TYPE_CHECKING:
    from tfmemtop.findings.leaks import WindowWishes

LOOK_S = 5.0
"""Seconds between two looks."""


class FindingWindows(Source):
    """Requests a window from the hooks of a process where it would make a finding more precise.

    Create it in the running event loop.
    """

    def __init__(self, stream: Stream, hooks: Sender) -> None:
        super().__init__(stream)
        self._hooks = hooks
        self._thread: ThreadPoolExecutor | None = None
        self._events: list[Event] = []
        self._wishes: WindowWishes | None = None  # used in the thread only

    def close(self) -> None:
        """Stop."""
        super().close()
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)

    def on_event(self, event: Event) -> None:
        """Handle an event of the stream."""
        if self._thread is None:
            if isinstance(event, Holders) and not event.is_missing:
                self._thread = ThreadPoolExecutor(1, "findings")
                self._events = [kept for kept in self._stream.backlog.events() if _matters(kept)]
                self._keep_doing(self._look_on(self._thread))
        elif _matters(event):
            self._events.append(event)

    async def _look_on(self, thread: ThreadPoolExecutor) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            events, self._events = self._events, []
            try:
                wanted = await asyncio.get_running_loop().run_in_executor(thread, self._wanted, events)
            except Exception as error:
                complain()
                self.close()
                detail = f"{type(error).__name__}: {error}"
                self._stream.notice("windows", NoticeKind.FINDINGS_WITHOUT_WINDOWS, detail=detail)
                return
            for pid in wanted:
                self._hooks.send(pid, {"do": "holders", "finding": True})

    # This runs in the thread:

    def _wanted(self, events: list[Event]) -> list[int]:
        if self._wishes is None:
            from tfmemtop.findings.leaks import WindowWishes  # imported here, as most sessions do not need it

            self._wishes = WindowWishes()
        return self._wishes.due(events)


def _matters(event: Event) -> bool:
    return not isinstance(event, Output | Trace)  # megabytes that no rule uses
