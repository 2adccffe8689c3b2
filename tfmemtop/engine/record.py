"""Records a run. The script keeps the caller's stdio and terminal. Screens can attach, but change nothing."""

import os
import signal
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager, suppress

import msgspec

from tfmemtop.engine.engine import Engine, session_info
from tfmemtop.engine.process.group_signal import GroupListener
from tfmemtop.engine.process.launch import Launch
from tfmemtop.engine.process.run import Runs
from tfmemtop.engine.stream.folders import SessionFolder, open_session
from tfmemtop.engine.stream.kept_sessions import kept_elsewhere, place_for
from tfmemtop.engine.stream.recorder import Thinner
from tfmemtop.events import Allocator, DeviceReading, Event, Framework, Notice, NoticeKind, RunEnd
from tfmemtop.events.recording import RecordingError, Writer

_OURS = {
    # Signals that concern this process or its terminal, or that cannot be caught. They are not passed on.
    *(signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU),
    *(signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT, signal.SIGTRAP, signal.SIGSYS),
    *(signal.SIGPIPE, signal.SIGXFSZ, signal.SIGXCPU, signal.SIGWINCH, signal.SIGURG),
}


_FAILURES = (
    *(NoticeKind.ALERT_FAILED, NoticeKind.ALERT_NOT_STARTED),
    *(NoticeKind.EXPORTER_ENDED, NoticeKind.METRICS_SD_LEFT),
)


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a recorded run.

    ``end`` is how the run ended. ``trouble`` is why the recording at ``path`` is incomplete, or ``None``. ``readings``
    counts the readings of devices and allocators. ``failures`` are the notices of the user's commands and of the export
    of metrics that failed.
    """

    end: RunEnd
    path: str
    readings: int
    trouble: RecordingError | None
    failures: list[Notice]


async def record(launch: Launch, path: str | os.PathLike[str] | None = None) -> Recorded:
    """Run ``launch.argv`` in this process's own terminal and write the stream to *path*.

    Without a *path*, this writes the recording that is kept of every session, in the folder of such recordings.

    The script stays in the foreground process group. So Ctrl-C reaches it from the terminal, and this process waits for
    it. A signal to this process is passed on to the script, unless the whole group received it. Call this from the main
    thread of a process that has no other children and that ends soon afterwards: from the end of the run on, this
    process ignores signals that ask it to end.

    Raises:
        RecordingError: the recording cannot be written to *path*.
        StartError: the script cannot be started.
        ValueError: the settings do not fit this machine.
        OSError: there is no place for the hook's socket, or for the recording.
    """
    with closing(open_session(lambda made: session_info(launch, made, recorded=True))) as folder:
        if path is not None:
            with closing(Writer(path)) as writer:
                return await _record(launch, folder, writer, None)
        with closing(Writer(place_for(folder.id))) as writer:
            try:
                return await _record(launch, folder, writer, Thinner())
            except BaseException:
                if not writer.size:  # nothing was started
                    writer.path.unlink(missing_ok=True)
                raise


async def _record(launch: Launch, folder: SessionFolder, writer: Writer, thinner: Thinner | None) -> Recorded:
    readings = 0
    failures: list[Notice] = []

    def count(event: Event) -> None:
        nonlocal readings
        readings += isinstance(event, (Allocator, DeviceReading, Framework))
        if isinstance(event, Notice) and event.kind in _FAILURES:
            failures.append(event)

    # A signal that is ignored, as under nohup, must stay ignored in the script.
    heeded = {n for n in signal.valid_signals() - _OURS if signal.getsignal(n) is not signal.SIG_IGN}
    with closing(GroupListener(heeded)) as group:
        engine = Engine(launch, folder, helper=group.pid)
        watch = engine.watch
        watch.stream.listen(count)
        async with engine:
            run = await watch.prepare(launch.argv, launch.settings)
            engine.begin()
            with _passed_on(heeded, group, watch.runs):
                watch.start(run)
                recorder = watch.record(lambda: writer, thinner)
                if thinner is None and launch.keep:
                    kept_elsewhere(folder.id, writer.path)
                await watch.ended()
                await watch.alerts.done()
    assert watch.runs.end is not None
    return Recorded(
        end=watch.runs.end,
        path=str(writer.path),
        readings=readings,
        trouble=recorder.trouble,
        failures=failures,
    )


@contextmanager
def _passed_on(numbers: Collection[int], group: GroupListener, runs: Runs) -> Iterator[None]:
    """Pass on to the script the signals that were sent to this process alone. Once it has ended, ignore them all."""

    def pass_on(number: int) -> None:
        if runs.pid is not None:
            with suppress(ProcessLookupError):
                os.kill(runs.pid, number)

    before = {n: signal.signal(n, lambda number, _: group.received(number, pass_on)) for n in numbers}
    try:
        yield
    finally:
        # A second HUP soon after the first must not end this process before the summary and the exit code.
        for number, handler in before.items():
            signal.signal(number, handler if runs.end is None else signal.SIG_IGN)
