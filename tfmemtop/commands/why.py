"""``tfmemtop why FILE``: the five questions answered for a recording, in text to be passed on."""

import textwrap
from pathlib import Path

from tfmemtop import __version__
from tfmemtop.commands.arguments import Arguments
from tfmemtop.commands.compare import numbered
from tfmemtop.commands.saying import say, tell
from tfmemtop.options import Refusal
from tfmemtop.recording import RecordingError, left_out, read
from tfmemtop.safe import safe
from tfmemtop.verdicts.course import Course, follow
from tfmemtop.verdicts.questions import also_found, answers, heading

WIDTH = 96


def run(arguments: Arguments) -> int:
    """Print the answers for the recording's last run, or for run N of ``FILE:N``; 0.

    Raises:
        Refusal: the file cannot be read, or no script was started in it.
    """
    path, number = numbered(arguments.target or "")
    try:
        recording = read(Path(path))
        course = follow(recording.events(), number)
    except RecordingError as error:
        raise Refusal(str(error)) from error
    if course.state.run is None or number not in (None, course.state.run.run):
        raise Refusal(f"{path} holds no run" + ("" if number is None else f" {number}"))
    tell(page(course))
    if recording.damaged:
        say(left_out(recording))
    return 0


def page(course: Course) -> list[str]:
    """The answers as lines of text."""
    lines = _wrap(heading(course), "")
    for answer in answers(course):
        lines += ["", *_wrap(answer.question, "")]
        for paragraph in answer.paragraphs:
            lines += _wrap(paragraph, "  ")
        for found in answer.found:
            lines += _wrap(found, "  * ")
        lines += [f"      {line}".rstrip() for line in answer.code]
    if others := also_found(course):
        lines += ["", "Also found"]
        for found in others:
            lines += _wrap(found, "  * ")
    return [
        *lines,
        "",
        f"(tfmemtop {__version__}; keys in brackets are those of tfmemtop replay and of the live screen)",
    ]


def _wrap(text: str, first: str) -> list[str]:
    plain = safe(" ".join(text.split()))  # before it is measured
    rest = " " * len(first)
    return textwrap.wrap(
        plain, WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )
