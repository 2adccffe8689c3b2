"""Write a recording to another file: compressed, or as plain JSON lines.

usage: tfmemtop convert FILE OUT
example: tfmemtop convert run.jsonl.gz run.jsonl

A name that ends in .jsonl makes plain JSON lines, any other name a compressed recording. The name - prints
JSON lines on stdout. See also: tfmemtop help formats.
"""

from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

from tfmemtop.cli import Refusal
from tfmemtop.cli.arguments import file_name
from tfmemtop.cli.output import print_encoded, say
from tfmemtop.cli.parser import BaseArguments, argument
from tfmemtop.cli.sessions import recording_path
from tfmemtop.engine.stream.backlog import Backlog
from tfmemtop.events import Event, encode
from tfmemtop.events.recording import Writer, read
from tfmemtop.events.recording.lines import lines_left_out

STDOUT = Path("-")

_PRINT_AT = 1 << 16  # bytes


class ConvertArguments(BaseArguments):
    """``file`` is the recording; ``output`` is the file to write, or :data:`STDOUT`."""

    file: str = argument("FILE", "a recording or a session", needed=True)
    output: Path = argument("OUT", "the file to write, or -", needed=True, type=file_name)


ARGUMENTS = ConvertArguments


def run(arguments: ConvertArguments) -> int:
    """Write the file; return 0.

    Raises:
        Refusal: the recording cannot be read, the file cannot be written, or both are the same file.
        OSError: stdout cannot be written to.
    """
    path = recording_path(arguments.file)
    with suppress(OSError):
        if path.samefile(arguments.output):
            raise Refusal(f"{path} cannot be written while it is read: name another file")
    recording = read(path)
    if arguments.output == STDOUT:
        _print(recording.events())
    else:
        with closing(Writer(arguments.output)) as writer:
            _write(recording.events(), writer)
    if recording.damaged or recording.unknown:
        say(lines_left_out(recording.path, damaged=recording.damaged, unknown=recording.unknown))
    return 0


def _write(events: Iterator[Event], writer: Writer) -> None:
    backlog = Backlog()
    for event in events:
        backlog.add(event)
        writer.write(event)
        if writer.full:
            writer.begin_chunk(backlog.events())


def _print(events: Iterator[Event]) -> None:
    lines: list[bytes] = []
    size = 0
    for event in events:
        lines.append(encode(event))
        size += len(lines[-1])
        if size >= _PRINT_AT:
            print_encoded(b"\n".join(lines))
            lines, size = [], 0
    if lines:
        print_encoded(b"\n".join(lines))
