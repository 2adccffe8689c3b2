"""Write a page to share: one HTML file that shows a run, or several.

usage: tfmemtop report [FILE…] [-o OUT]
example: tfmemtop report run.jsonl -o run.html

FILE is a recording, or the name of a session, see tfmemtop ls. Without FILE it is the last session. FILE:2 means
its runs up to run 2. Several files, such as a job's ranks, are shown beside each other.

The page opens in any browser, without a network.
"""

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from tfmemtop.cli import Refusal
from tfmemtop.cli.arguments import FOR_OUTPUT, file_name
from tfmemtop.cli.output import print_lines
from tfmemtop.cli.parser import BaseArguments, argument, option
from tfmemtop.cli.sessions import is_running, path_and_run, report_events, spacing_s
from tfmemtop.events.recording import RecordingError, read
from tfmemtop.reports.shared.data import PageSession
from tfmemtop.reports.shared.html import html
from tfmemtop.reports.shared.sessions import page_data, page_session
from tfmemtop.state import State


class ReportPageArguments(BaseArguments):
    """``files`` are recordings, as ``FILE`` or ``FILE:N``."""

    files: Sequence[str] = argument("FILE", "a recording or a session; FILE:2 means its run 2", nargs="*", default=())
    output: Path | None = option(
        FOR_OUTPUT, "the file to write; by default FILE.html here", "-o", "--output", metavar="OUT", type=file_name
    )


ARGUMENTS = ReportPageArguments


def run(arguments: ReportPageArguments) -> int:
    """Write the page and print its name; return 0.

    Raises:
        Refusal: a recording cannot be read, or the file cannot be written.
    """
    sessions = [_session(name)[0] for name in arguments.files or (None,)]
    output = arguments.output or _new_file(Path(sessions[0].name).stem)
    text = html(page_data(sessions, None))
    try:
        with open(output, "w", encoding="utf-8", opener=partial(os.open, mode=0o600)) as file:
            file.write(text)
    except OSError as error:
        raise Refusal(f"cannot write {output}: {error.strerror or error}") from error
    print_lines([f"The page is in {output}"])
    return 0


def _session(name: str | None) -> tuple[PageSession, State]:
    path, number = path_and_run(name)
    try:
        recording = read(Path(path))
        going = is_running(recording.path, recording.session.id)
        return page_session(
            Path(path).name, report_events(recording, number), number, spacing_s(recording), alive=going
        )
    except RecordingError as error:
        raise Refusal(error.text) from error


def _new_file(stem: str) -> Path:
    """Return a file of that name in the current folder that does not exist yet."""
    number = 1
    path = Path(f"{stem}.html")
    while path.exists():
        number += 1
        path = Path(f"{stem}-{number}.html")
    return path
