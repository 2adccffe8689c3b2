"""Builds the probe in a process beside the script, then the library of addresses; has the hooks load both."""

import asyncio
import json
import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec

from tfmemtop import boot, events
from tfmemtop.engine.sources.hooks import Hooks
from tfmemtop.engine.sources.processes import has_memory
from tfmemtop.engine.sources.source import Source, helper_output
from tfmemtop.engine.stream import Stream
from tfmemtop.probe.cache import Built

_PROBE, _ADDRESSES = "probe", "addresses"
"""Products of ``probe/build.py``, in the order in which they are built: no script waits for the second."""
_MANY_CORES = 4  # with more, both are built at once: a short first run needs the second, too, before it ends
_QUICK_S = 0.5  # a library that exists already is found in this time, so no build is reported
_BUILD_S = 400.0
_FAULTS = {signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGABRT, signal.SIGFPE, signal.SIGTRAP, signal.SIGSYS}
"""The signals that end a process because of a fault in a library, or because it did what it is forbidden to do."""


_Outcome = tuple[Built, events.Probe]
"""The result of a build, and the event that reports it, without time and process."""


class Probes(Source):
    """Gives every hooked process the library for its own TensorFlow. Create it in the running event loop."""

    def __init__(self, stream: Stream, hooks: Hooks, sessions: set[int], *, enabled: bool = True) -> None:
        """The process sessions (``setsid``) of all builds are added to *sessions*."""
        self._loop = asyncio.get_running_loop()
        super().__init__(stream)
        self._hooks = hooks
        self._enabled = enabled
        self._builds: dict[tuple[str, str], asyncio.Task[_Outcome]] = {}  # by TensorFlow's folder and product
        self._hooked: dict[int, str] = {}  # by process, the folder of its TensorFlow
        self._loads = _Loads(self._condemn)
        self._unfit: set[str] = set()  # digests of libraries that ended a process
        self._sessions = sessions

    def close(self) -> None:
        """Stop. A build that is running goes on by itself, and its library is used the next time."""
        super().close()
        self._loads.close()
        for build in self._builds.values():
            build.cancel()

    def on_event(self, event: events.Event) -> None:
        """Handle an event of the stream."""
        # _provide() is called later: what it publishes would otherwise reach some readers before this event.
        if isinstance(event, events.Hook) and event.tensorflow_path and event.pid not in self._hooked:
            self._hooked[event.pid] = event.tensorflow_path
            self._loop.call_soon(self._provide, event.pid)
        elif isinstance(event, events.HookEnd):
            self._hooked.pop(event.pid, None)
        self._loads.take(event)

    def _provide(self, pid: int) -> None:
        if not self._enabled:
            self._publish(pid, events.ProbeState.UNAVAILABLE, events.ProbeNote.LEFT_OUT)
            return
        self._order(_PROBE, pid)
        if len(os.sched_getaffinity(0)) > _MANY_CORES:
            self._begun(_ADDRESSES, pid)
        self._loop.call_later(_QUICK_S, self._say_building, pid)

    def _order(self, product: str, pid: int) -> None:
        """Deliver *product* to the process *pid* once it is built."""
        if pid not in self._hooked:
            return
        self._begun(product, pid).add_done_callback(partial(self._deliver, product, pid))

    def _begun(self, product: str, pid: int) -> asyncio.Task[_Outcome]:
        """Return the build of *product* for the process *pid*, which begins if there is none."""
        key = self._hooked[pid], product
        if key not in self._builds:
            self._builds[key] = self._loop.create_task(self._build(*key))
        return self._builds[key]

    async def _build(self, folder: str, product: str) -> _Outcome:
        """Build *product* for the TensorFlow in *folder*."""
        command = boot.command("tfmemtop.probe.build", folder, product)
        try:
            output = await helper_output(command, _BUILD_S, self._sessions, outlives=True)
        except OSError as error:
            del self._builds[folder, product]  # for the next process, it is tried again
            return _failed(events.ProbeNote.NOT_BUILT, detail=error.strerror or str(error))
        return _failed(events.ProbeNote.NOT_IN_TIME, count=round(_BUILD_S)) if output is None else _parse(output)

    def _say_building(self, pid: int) -> None:
        build = self._builds.get((self._hooked.get(pid, ""), _PROBE))
        if build is not None and not build.done():
            self._publish(pid, events.ProbeState.BUILDING, events.ProbeNote.BEING_BUILT)
            self._hooks.send(pid, {"do": "expect"})

    def _deliver(self, product: str, pid: int, build: asyncio.Task[_Outcome]) -> None:
        if build.cancelled() or pid not in self._hooked:
            return
        built, told = build.result()
        if product == _ADDRESSES:
            if told.state is events.ProbeState.BUILT:
                self._hooks.send(pid, {"do": "locate", "path": built.path, "checksum": built.checksum})
            else:
                detail = told.detail if told.unbuilt is None else told.unbuilt.detail or told.unbuilt.why.value
                self._stream.notice("no-addresses", events.NoticeKind.NO_ADDRESSES, detail=detail)
        elif built.digest in self._unfit:
            self._publish(pid, events.ProbeState.FAILED, events.ProbeNote.NOT_AGAIN)
        else:
            if told.state is events.ProbeState.BUILT:
                self._loads.handed(pid, built)
                self._hooks.send(pid, {"do": "load", "path": built.path, "checksum": built.checksum})
                self._order(_ADDRESSES, pid)
            self._stream.publish(msgspec.structs.replace(told, t=self._stream.now(), pid=pid))

    def _publish(self, pid: int, state: events.ProbeState, note: events.ProbeNote) -> None:
        self._stream.publish(events.Probe(t=self._stream.now(), pid=pid, state=state, note=note))

    def _condemn(self, pid: int, built: Built, number: int | None) -> None:
        """Stop using a library that ended the process that loaded it. *number* is the signal, if it is known."""
        from tfmemtop.probe.cache import refuse

        self._unfit.add(built.digest)
        note, file, detail = events.ProbeNote.ENDED_PROCESS, "", ""
        try:
            file = str(refuse(Path(built.path), number))
        except OSError as error:
            note, detail = events.ProbeNote.ENDED_PROCESS_UNMARKED, str(error)
        t, state = self._stream.now(), events.ProbeState.FAILED
        told = events.Probe(t=t, pid=pid, state=state, note=note, file=file, detail=detail, signal=number)
        self._loop.call_soon(self._stream.publish, told)


class _Loads:
    """Records which process loads which library, to find a library that ends its process.

    *condemn* receives the process, its library, and the signal that ended the process, if that is known. A hook reports
    when it is about to load a library, and again after its first readings with it, some milliseconds later. How a
    process ended is known only of a run's first process.
    """

    def __init__(self, condemn: Callable[[int, Built, int | None], None]) -> None:
        self._condemn = condemn
        self._handed: dict[int, Built] = {}  # by process
        self._loading: set[int] = set()
        self._proven: set[str] = set()  # digests of libraries that a process has loaded and used
        self._main = 0
        self._doubted: Built | None = None  # what the run's first process was loading as its hook was lost

    def handed(self, pid: int, built: Built) -> None:
        """Note that a process is about to receive the path of a library."""
        self._handed[pid] = built

    def take(self, event: events.Event) -> None:
        """Update what is known of the processes from an *event* of the stream."""
        if isinstance(event, events.Run):
            self._main = event.pid
        elif isinstance(event, events.Probe) and event.pid in self._handed:
            if event.state is events.ProbeState.LOADING:
                self._loading.add(event.pid)
            elif event.state is events.ProbeState.LOADED:
                self._proven.add(self._handed[event.pid].digest)
            if event.state in (events.ProbeState.LOADED, events.ProbeState.FAILED):
                self._loading.discard(event.pid)
        elif isinstance(event, events.HookEnd):
            built = self._handed.pop(event.pid, None)
            lost = event.reason is events.HookEnding.LOST
            if built and event.pid in self._loading and lost and not has_memory(event.pid):
                self._lost(event.pid, built)
            self._loading.discard(event.pid)
        elif isinstance(event, events.RunEnd):
            doubted, self._doubted = self._doubted, None
            if doubted and event.signal in _FAULTS:
                self._condemn(self._main, doubted, event.signal)

    def close(self) -> None:
        """Stop, and condemn a library that is in doubt, since it will not be known how its process ended."""
        if self._doubted:
            self._condemn(self._main, self._doubted, None)

    def _lost(self, pid: int, built: Built) -> None:
        if pid == self._main:
            self._doubted = built
        elif built.digest not in self._proven:
            self._condemn(pid, built, None)


def _parse(output: bytes) -> _Outcome:
    last = output.decode(errors="replace").strip().rpartition("\n")[2]
    try:
        built = Built(**json.loads(last))
        state = events.ProbeState(built.state)
        if state is events.ProbeState.BUILT:
            return built, events.Probe(t=0.0, pid=0, state=state, note=events.ProbeNote.TO_BE_LOADED)
        return built, events.Probe(t=0.0, pid=0, state=state, unbuilt=msgspec.convert(built.unbuilt, events.Unbuilt))
    except (ValueError, TypeError):
        return _failed(events.ProbeNote.NOT_BUILT, detail=last)


def _failed(note: events.ProbeNote, *, detail: str = "", count: int | None = None) -> _Outcome:
    return Built("failed"), events.Probe(
        t=0.0, pid=0, state=events.ProbeState.FAILED, note=note, detail=detail, count=count
    )
