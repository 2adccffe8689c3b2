"""Runs a new replay program once, on three allocations whose answer is known. Exit status 0 means that it is right."""

import json
import sys
from pathlib import Path

from tfmemtop.events import SettingReplayed
from tfmemtop.experiments.whatif.replayer import NotReplayed, Question, run

_MIB = 1 << 20
_EVENTS = [(0, 8 * _MIB), (2, 1000), (3, 1), (0, 4 * _MIB), (1, 0)]


def main(arguments: list[str]) -> int:
    """Try a program. Of the three *arguments* only the second is used: the program's path."""
    _, program, _ = arguments
    try:
        enough, small = run(Path(program), _EVENTS, [0], [Question(True, False), Question(False, False, 8 * _MIB)])
    except NotReplayed as error:
        return _failed("replay", error.detail or error.why)
    assert isinstance(enough, SettingReplayed) and isinstance(small, SettingReplayed)
    right = enough.in_order.fits and enough.in_order.in_use == 4 * _MIB and enough.in_order.peak == 12 * _MIB
    if not right or small.fits is not False or small.in_order.failed != 1:
        return _failed("answers", f"{enough} {small}")
    return 0


def _failed(fault: str, detail: str) -> int:
    """Print the fields of ``Distrust`` in ``events/probe.py``; return 1."""
    sys.stdout.write(json.dumps({"fault": fault, "detail": detail}) + "\n")
    return 1
