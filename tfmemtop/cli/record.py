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
from contextlib import suppress
from itertools import chain
from pathlib import Path

from tfmemtop.cli import Refusal
from tfmemtop.cli.arguments import FOR_RECORDING, WatchedRunArguments, file_of_a_rank
from tfmemtop.cli.launch import NO_ROOM, file_for, has_room, make_launch, run_alone, with_sizes
from tfmemtop.cli.output import say
from tfmemtop.cli.parser import Trailing, option
from tfmemtop.cli.sessions import report_events
from tfmemtop.engine.process.launch import StartError
from tfmemtop.engine.record import record
from tfmemtop.events import RunEnd
from tfmemtop.events.recording import RecordingError, read
from tfmemtop.events.recording.lines import lines_left_out
from tfmemtop.exit_codes import SIGNALLED
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
    except StartError as error:
        raise Refusal(str(error), error.exit_code) from error
    except (RecordingError, ValueError) as error:
        raise Refusal(reason(error)) from error
    lines = [*report(Path(done.path), done.end, done.trouble, done.readings), *remarks]
    lines += [notice_text(failed).line for failed in done.failures]
    place = placement(os.environ)
    # The output of all ranks goes to one place, so each rank prints one line, which contains its name.
    for line in [of_rank(place, lines)] if place and place.among_others else lines:
        say(line)
    if arguments.report is not None:
        say(_page(Path(done.path), arguments.report))
    if done.end.signal is not None:
        if "SLURM_STEP_ID" in os.environ:
            _end_by(done.end.signal)
        return SIGNALLED + done.end.signal
    return done.end.exit_code or 0


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
