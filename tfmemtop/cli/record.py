"""Run a command without a screen and record what happens.

usage: tfmemtop record [OPTIONS] [-o FILE] -- COMMAND…
example: tfmemtop record -- python train.py

Without -o the recording is kept with those of all sessions; tfmemtop ls lists them. A FILE whose name ends in .jsonl
becomes plain text, any other is compressed.

The command keeps its own terminal, pipes and files. When it ends, a summary is printed to stderr. The exit
code is that of the command. See also: tfmemtop help recordings.
"""

import asyncio
import os
import resource
import signal
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import chain
from pathlib import Path

import msgspec

from tfmemtop.cli import Refusal
from tfmemtop.cli.arguments import FOR_RECORDING, WatchedRunArguments, file_of_a_rank
from tfmemtop.cli.launch import NO_ROOM, file_for, has_room, make_launch, run_alone, with_sizes
from tfmemtop.cli.output import say
from tfmemtop.cli.parser import Trailing, option
from tfmemtop.cli.sessions import report_events
from tfmemtop.cli.signals import GroupListener
from tfmemtop.engine.engine import Engine, session_info
from tfmemtop.engine.process.launch import Launch
from tfmemtop.engine.process.run import Runs
from tfmemtop.engine.stream.folders import SessionFolder, open_session
from tfmemtop.engine.stream.kept_sessions import kept_elsewhere, place_for
from tfmemtop.engine.stream.recorder import Thinner
from tfmemtop.events import Allocator, DeviceReading, Event, Framework, Notice, NoticeKind, RunEnd
from tfmemtop.events.recording import RecordingError, Writer, read
from tfmemtop.events.recording.lines import lines_left_out
from tfmemtop.failure import describe, no_summary, reason
from tfmemtop.findings.rules.ending import ending
from tfmemtop.findings.rules.notices import say as notice_text
from tfmemtop.home import writable_output_folder
from tfmemtop.placement import of_rank, placement
from tfmemtop.reports.summary import summarise


class RecordArguments(WatchedRunArguments):
    """The options of any run, and the file to record to."""

    trailing = Trailing.NEEDED
    output: Path | None = option(
        FOR_RECORDING,
        "the file to record to; %%j, %%h and %%r in its name become job, host and rank",
        "-o",
        "--output",
        metavar="FILE",
        type=file_of_a_rank,
    )
    report: Path | None = option(
        FOR_RECORDING,
        "at the end, write an HTML page of the run to FILE, see tfmemtop report",
        metavar="FILE",
        type=file_of_a_rank,
    )


ARGUMENTS = RecordArguments


def run(arguments: RecordArguments) -> int:
    """Run the script, print a summary on stderr, and return the script's exit code, or 128+n for signal n.

    Raises:
        Refusal: the script cannot be started, or the file cannot be recorded to.
    """
    if not has_room():
        say(f"the command runs without tfmemtop: {NO_ROOM}")
        return run_alone(arguments.command, os.environ)
    output, remarks = file_for(arguments.output)
    if output is None:
        try:
            writable_output_folder()
        except OSError:  # a line has told that no sessions are kept
            output = Path(os.devnull)
    arguments.record = output
    launch = make_launch(arguments, arguments.command, with_sizes(arguments, arguments.command))
    try:
        done = asyncio.run(record(launch, output))
    except ValueError as error:
        raise Refusal(reason(error)) from error
    lines = [*report(Path(done.path), done.end, done.trouble, done.readings), *remarks]
    lines += [notice_text(failed).line for failed in done.failures]
    place = placement(os.environ)
    # The output of all ranks goes to one place, so each rank prints one line, which contains its name.
    for line in [of_rank(place, lines)] if place and place.among_others else lines:
        say(line)
    if arguments.report is not None:
        say(_page(Path(done.path), arguments.report))
    if done.end.signal is not None and "SLURM_STEP_ID" in os.environ:
        _end_by(done.end.signal)
    return done.end.shell_code


def _page(recording: Path, pattern: Path) -> str:
    """Write the page of *recording* to the file that *pattern* means. Return where it is, or why there is none."""
    from tfmemtop.cli.report import write_page  # only here: most runs need no page

    try:
        output, _ = file_for(pattern)
        return f"the page is in {write_page([str(recording)], output)}"
    except Refusal as error:
        return f"no page was written: {error}"
    except Exception as error:  # the run's exit code matters more than its page
        return f"no page was written: {describe(error)}"


def _end_by(number: int) -> None:
    """End this process by the signal that ended the script, so that Slurm reports that signal."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the script's own core is enough
    with suppress(OSError):  # the handler of KILL cannot be set, and need not be
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)


def report(path: Path, end: RunEnd, trouble: RecordingError | None, readings: int) -> list[str]:
    """Return lines about a run that has ended, and about its recording at *path*.

    *readings* is the number of readings that were taken. *trouble* is why the recording is incomplete, if it is.
    """
    try:
        recording = read(path)
        lines = summarise(chain(report_events(recording), [end] if trouble else []), readings)
        if recording.damaged:
            lines.append(lines_left_out(recording.path, damaged=recording.damaged, unknown=recording.unknown))
    except RecordingError:
        # Nothing can be read back from a device such as /dev/null, or if the disk was full from the start.
        lines = [ending(end.ending)]
    except Exception as error:  # the run's exit code matters more than its summary
        lines = [ending(end.ending), no_summary(error)]
    incomplete = f"the recording is not complete: {trouble}" if trouble else ""
    return [*lines, incomplete or f"recorded in {path}"]


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
