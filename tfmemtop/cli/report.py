"""Write a page to share: one HTML file that shows a run, or several.

usage: tfmemtop report [FILE…] [-o OUT]
example: tfmemtop report run.jsonl -o run.html

FILE is a recording, or the name of a session, see tfmemtop ls. Without FILE it is the last session. FILE:2 means
its runs up to run 2. Several recordings, such as those of a job's ranks, are shown beside each other.

The page opens in any browser, without a network. If the name of OUT ends in .svg, a picture of memory over time and of
its holders is written instead. Without -o, the page is FILE.html in the current folder. See also: tfmemtop help report.
"""

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from tfmemtop.cli import Refusal
from tfmemtop.cli.arguments import FOR_OUTPUT, file_name
from tfmemtop.cli.output import print_lines
from tfmemtop.cli.parser import BaseArguments, argument, option
from tfmemtop.cli.sessions import is_running, path_and_run, report_events, spacing_s
from tfmemtop.events.recording import read
from tfmemtop.events.recording.lines import lines_left_out, reason_of
from tfmemtop.reports.shared.data import PageSession
from tfmemtop.reports.shared.page import html, page_comparison, page_data, page_session
from tfmemtop.reports.shared.picture import picture
from tfmemtop.state import State
from tfmemtop.state.figures import figures
from tfmemtop.state.ranks import Rank, ranked


class PageArguments(BaseArguments):
    """``files`` are recordings, as ``FILE`` or ``FILE:N``."""

    files: Sequence[str] = argument(
        "FILE", "a recording or a session; FILE:2 means its runs up to run 2", nargs="*", default=()
    )
    output: Path | None = option(
        FOR_OUTPUT, "the page, or a picture (.svg), to write", "-o", "--output", metavar="OUT", type=file_name
    )


ARGUMENTS = PageArguments


def run(arguments: PageArguments) -> int:
    """Write the page and print its name; return 0.

    Raises:
        Refusal: a recording cannot be read, or the file cannot be written.
    """
    print_lines([f"The page is in {write_page(arguments.files or (None,), arguments.output).absolute()}"])
    return 0


def write_page(names: Sequence[str | None], output: Path | None) -> Path:
    """Write the page of the recordings called *names* to *output*, or to a new file here; return the file.

    Raises:
        Refusal: a recording cannot be read, or the file cannot be written.
    """
    kind = output.suffix.lower() if output else ""
    if kind == ".png":
        raise Refusal("a picture is written as .svg; other programs make a PNG of it, such as rsvg-convert")
    read_sessions = sorted((_read(name, len(names) - 1) for name in names), key=_order)
    sessions = [one.session for one in read_sessions]
    if kind == ".svg":
        content = picture(sessions).encode()
    else:
        ranks = [one.rank for one in read_sessions if one.rank is not None]
        compared = len(ranks) == len(sessions) > 1
        beside = page_comparison(ranks, [one.state for one in read_sessions]) if compared else None
        content = html(page_data(sessions, beside)).encode()
    try:
        return _written(content, output, read_sessions[0].path.name.removesuffix(".gz").removesuffix(".jsonl"))
    except OSError as error:
        raise Refusal(f"cannot write {output or 'to this folder'}: {reason_of(error)}") from error


class _Read(NamedTuple):
    """A recording that was read: ``rank`` is its last run to be compared, ``None`` without a run."""

    path: Path
    session: PageSession
    state: State
    rank: Rank | None


def _read(name: str | None, beside: int) -> _Read:
    path, number = path_and_run(name)
    recording = read(Path(path))
    going = is_running(recording.path, recording.session.id)
    called = Path(path).name + ("" if number is None else f" run {number}")
    events = report_events(recording, number)
    session, state = page_session(called, events, number, spacing_s(recording), alive=going, beside=beside)
    if recording.damaged or recording.unknown:
        left_out = lines_left_out(recording.path, damaged=recording.damaged, unknown=recording.unknown)
        session = replace(session, notes=[f"{left_out}.", *session.notes])
    compared = ranked(called, state, figures(state.run, state.now, called, alive=going)) if state.run else None
    return _Read(recording.path, session, state, compared)


def _order(one: _Read) -> int:
    """Return the number of the rank, which orders the sessions of a job."""
    return one.rank.number or 0 if one.rank else 0


def _written(content: bytes, output: Path | None, stem: str) -> Path:
    """Write *content* to *output*, or without it to a new file, which only its owner may read."""
    private = partial(os.open, mode=0o600)
    if output is not None:
        with open(output, "wb", opener=private) as file:
            file.write(content)
        return output
    number = 1
    while True:
        path = Path(f"{stem}.html" if number == 1 else f"{stem}-{number}.html")
        try:
            with open(path, "xb", opener=private) as file:
                file.write(content)
            return path
        except FileExistsError:
            number += 1
