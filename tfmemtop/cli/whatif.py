"""Predict what other settings would do to a recorded run, by replaying its allocations.

usage: tfmemtop whatif [FILE] [--device DEVICE] [--json]
example: tfmemtop whatif run.jsonl

FILE is a recording, or the name of a session, see tfmemtop ls. Without FILE it is the last session.

The run's recorded allocations are replayed in TensorFlow's own allocator, with growth on and off and under
many limits. The replay runs on this machine and needs no GPU. --device chooses one of several logical devices.
"""

import asyncio

from tfmemtop.cli import Refusal
from tfmemtop.cli.arguments import FOR_OUTPUT, ReportArguments
from tfmemtop.cli.output import print_json, print_lines
from tfmemtop.cli.parser import option
from tfmemtop.cli.sessions import recorded_run
from tfmemtop.events import Unreplayed
from tfmemtop.experiments.session.whatif import ask, traced, unreplayed
from tfmemtop.experiments.whatif.settings import cards
from tfmemtop.findings.missing import NOT_REPLAYED, unrecorded, unreplayed_text
from tfmemtop.reports.whatif import page, to_json, views
from tfmemtop.state import State, apply


class WhatIfArguments(ReportArguments):
    """``device`` is a logical device; ``None`` means all that were recorded."""

    device: str | None = option(FOR_OUTPUT, "one logical device, such as GPU:1", metavar="DEVICE")


ARGUMENTS = WhatIfArguments


def run(arguments: WhatIfArguments) -> int:
    """Print what would happen with other settings; return 0.

    Raises:
        Refusal: the file cannot be read, or it has no such run, or no allocations that can be replayed.
    """
    path, _, state, _ = recorded_run(arguments.file)
    _replay(state)
    found = views(state, arguments.device)
    if not found:
        why = unrecorded(state)
        untraced = f"this recording has no first steps{f': {why}' if why else ''}"
        raise Refusal(f"{path}: {NOT_REPLAYED if any(traced(state)) else untraced}")
    if arguments.json:
        print_json(to_json(found[0]))
    else:
        print_lines(page(found, [(f"{card.nominal} {card.name}", card.usable, card.measured) for card in cards()]))
    return 0


def _replay(state: State) -> None:
    """Replay the allocations that were not, or could not be, replayed during the run.

    Raises:
        Refusal: the replay failed.
    """
    for here in filter(None, (pool.here() for pool in unreplayed(state))):
        answer = asyncio.run(ask(here))
        if answer.unreplayed is Unreplayed.NO_ANSWER:
            raise Refusal(unreplayed_text(answer))
        apply(state, answer)
