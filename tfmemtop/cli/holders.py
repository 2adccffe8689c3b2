"""Show who held the memory of a recorded run at the peak of a step.

usage: tfmemtop holders [FILE] [--by WHAT] [--device NAME] [--json]
example: tfmemtop holders run.jsonl --by layer

FILE is a recording, or the name of a session, see tfmemtop ls. Without FILE it is the last session. The run
may still go on.

The rows add up to what TensorFlow's allocator had in use. One row holds the memory whose holder is not known; the
reason is below the table.
"""

from pathlib import Path

from tfmemtop.cli import Refusal
from tfmemtop.cli.arguments import FOR_OUTPUT, ReportArguments
from tfmemtop.cli.output import print_json, print_lines
from tfmemtop.cli.parser import option
from tfmemtop.cli.sessions import recorded_run
from tfmemtop.findings.holders import windowless_text
from tfmemtop.findings.missing import only_asked, unused_probe
from tfmemtop.findings.probe import why_unused
from tfmemtop.reports.holders import table, to_json
from tfmemtop.state.holder_choice import chosen, missing
from tfmemtop.state.holders import By


class HoldersArguments(ReportArguments):
    """``by`` is what each row stands for; ``device`` is a logical device, by default that with the most in use."""

    by: str = option(
        FOR_OUTPUT,
        "layer (default), op, kind, shape, or line of the script",
        choices=tuple(by.value for by in By),
        default=By.LAYER.value,
    )
    device: str | None = option(
        FOR_OUTPUT,
        "the pool of this logical device, such as GPU:0; by default the pool in which most was in use",
        metavar="NAME",
    )


ARGUMENTS = HoldersArguments


def run(arguments: HoldersArguments) -> int:
    """Print the holders at the peak, as a table or as JSON; return 0.

    Raises:
        Refusal: the file cannot be read, or it has no such run, or no window of that run or device.
    """
    path, _, state, _ = recorded_run(arguments.file)
    windows = chosen(state)
    if not windows:
        why = windowless_text(missing(state)) or why_unused(unused_probe(state))
        if not why and only_asked(state):
            why = "the session was started with --holders-interval 0, and nobody asked for one"
        raise Refusal(f"{Path(path).name} holds no window of allocations" + (f": {why}" if why else ""))
    shown = [one for one in windows if arguments.device in (None, one.device)]
    if not shown:
        known = ", ".join(sorted({one.device for one in windows}))
        raise Refusal(f"there is no window of {arguments.device}, only of {known}")
    by = By(arguments.by)
    if arguments.json:
        print_json(to_json(shown[0], by))
    else:
        print_lines(table(shown[0], by, sorted({one.device for one in windows} - {shown[0].device})))
    return 0
