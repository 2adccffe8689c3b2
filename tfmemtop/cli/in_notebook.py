"""Prints for a notebook what is recorded of its own session. ``%memtop`` runs this small program beside the kernel.

So the kernel does not load our modules, and folding a long recording does not take the kernel's time.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tfmemtop.cli import Refusal
from tfmemtop.cli.known_sessions import alive, recording_of
from tfmemtop.cli.recorded import spacing_s, told
from tfmemtop.cli.saying import tell_json
from tfmemtop.events.recording import RecordingError, read
from tfmemtop.events.recording.errors import recording_text
from tfmemtop.findings.run_review import review
from tfmemtop.notebooks.drawn import Drawn
from tfmemtop.reports.account import account
from tfmemtop.reports.why import page
from tfmemtop.state import State

_COLUMNS = 600


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a :class:`Drawn` about the session whose name is in *arguments*, as JSON; return 0."""
    (session,) = sys.argv[1:] if arguments is None else arguments
    try:
        tell_json(msgspec.json.encode(_look(session)))
    except Refusal as error:
        tell_json(msgspec.json.encode(Drawn(error=str(error))))
    except RecordingError as error:
        tell_json(msgspec.json.encode(Drawn(error=recording_text(error))))
    return 0


def _look(session: str) -> Drawn:
    recording = read(Path(recording_of(session)))
    going = alive(recording.path, recording.session.id)
    seen = review(told(recording), None, spacing_s(recording), alive=going)
    if seen.state.run is None:
        return Drawn()
    parts = account(seen.state)
    return msgspec.structs.replace(_curves(seen.state), text=[*parts, *([""] if parts else []), *page(seen, session)])


def _curves(state: State) -> Drawn:
    """Return the newest run's memory from its start on, in ``_COLUMNS`` columns."""
    run = state.run
    assert run is not None
    width_s = max(run.curve.end, 0.1) / _COLUMNS
    in_use, pool, total = (run.curve.columns(width_s, _COLUMNS, boundary) for boundary in range(3))
    return Drawn(
        width_s=width_s,
        in_use=in_use,
        pool=pool,
        # Without a GPU the process's total equals the pool, so it is left out.
        total=total if state.devices else [],
        limit=max(run.limits.values(), default=None),
        ran_out_s=[each.t - run.started for each in run.ran_out],
    )
