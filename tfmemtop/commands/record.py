"""``tfmemtop record -o FILE -- COMMAND…``: no screen; the script's stdio untouched, a summary at the end."""

import asyncio
from pathlib import Path

from tfmemtop.commands.arguments import Arguments
from tfmemtop.commands.launching import make_launch
from tfmemtop.commands.saying import say
from tfmemtop.engine.record import record
from tfmemtop.engine.run import StartError
from tfmemtop.events import RunEnd
from tfmemtop.failure import describe
from tfmemtop.options import Refusal
from tfmemtop.recording import RecordingError, left_out, read
from tfmemtop.summary import describe_end, summarise


def run(arguments: Arguments) -> int:
    """Run the script, say on stderr how it went, and give its exit code, or 128+n for signal n.

    Raises:
        Refusal: it cannot be started, or the file cannot be recorded to.
    """
    assert arguments.record is not None
    launch = make_launch(arguments, 80, 24)
    try:
        done = asyncio.run(record(launch, arguments.record))
    except StartError as error:
        raise Refusal(str(error), error.exit_code) from error
    except (RecordingError, ValueError) as error:
        raise Refusal(str(error)) from error
    for line in report(arguments.record, done.end, done.trouble):
        say(line)
    if done.end.signal is not None:
        return 128 + done.end.signal
    return done.end.exit_code or 0


def report(path: Path, end: RunEnd, trouble: str | None) -> list[str]:
    """What to say of a run that has ended and of its recording at *path*."""
    try:
        recording = read(path)
        lines = summarise(recording.events()).lines()
        if recording.damaged:
            lines.append(left_out(recording))
    except RecordingError:
        # Such as /dev/null, of which nothing is read back; or the disk was full from the start.
        lines = [describe_end(end)]
    except Exception as error:  # the run's exit code counts more
        lines = [describe_end(end), f"the summary cannot be made: {describe(error)}"]
    return [*lines, f"the recording is not complete: {trouble}" if trouble else f"recorded in {path}"]
