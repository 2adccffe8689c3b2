"""Compare two runs: their figures side by side, and the differences in words.

usage: tfmemtop compare [A [B]] [--json]
example: tfmemtop compare before.jsonl after.jsonl

A and B are recordings, or names of sessions, see tfmemtop ls. A:2 means run 2 of one that has several. Without B, the
last two runs of A are compared; without A those of the last session, or if it has one run, the last two sessions.
A Jupyter kernel's run is compared with the one before its restart, which is a session of its own.
"""

from pathlib import Path
from typing import NamedTuple

import msgspec

from tfmemtop.commands.arguments import add_json_option
from tfmemtop.commands.known_sessions import recorded
from tfmemtop.commands.parser import Arguments as Parsed
from tfmemtop.commands.parser import Parser
from tfmemtop.commands.recorded import fold, no_run, numbered
from tfmemtop.commands.saying import tell, tell_json
from tfmemtop.engine.stream.kept_sessions import kept_recordings
from tfmemtop.options import Refusal
from tfmemtop.reports.compare import table, to_json
from tfmemtop.state import State
from tfmemtop.state.figures import RunFigures, figures
from tfmemtop.state.holder_choice import chosen
from tfmemtop.state.holder_views import Listed, listed
from tfmemtop.state.holders import By


class Arguments(Parsed):
    """``first`` and ``second`` are recordings, as ``FILE`` or ``FILE:N``."""

    first: str | None = None
    second: str | None = None
    json: bool = False


def declare(parser: Parser) -> None:
    """The recordings."""
    parser.arguments = Arguments
    parser.add_argument("first", metavar="A", nargs="?", help="a recording or a session; A:2 means its run 2")
    parser.add_argument("second", metavar="B", nargs="?", help="another; without it, the last two runs of A")
    add_json_option(parser)


def run(arguments: Arguments) -> int:
    """Print the comparison, as a table or as JSON; return 0.

    Raises:
        Refusal: a file cannot be read, or there is no second run to compare with.
    """
    one, other = arguments.first, arguments.second
    if other is None and not (one and numbered(one)[1]):
        first, second = _last_two(one)
    else:
        first, second = _run_of(one), _run_of(other or one)
    holders = (first.holders, second.holders) if first.holders and second.holders else None
    if arguments.json:
        tell_json(msgspec.json.format(msgspec.json.encode(to_json(first.figures, second.figures, holders))))
    else:
        tell(table(first.figures, second.figures, holders))
    return 0


class _Run(NamedTuple):
    """A run, and who held its memory at the peak of a step, by layer; ``None`` where no window was recorded."""

    figures: RunFigures
    holders: Listed | None


def _last_two(name: str | None) -> tuple[_Run, _Run]:
    path = numbered(name)[0]
    state = fold(path)
    if len(state.runs) > 1:
        before, last = state.runs[-2:]
        held = _holders(state)
        # The state forgets the processes of a run as soon as the next one begins.
        held_before = _holders(fold(path, before.run)) if held else None
        return _Run(figures(before, state.now), held_before), _Run(figures(last, state.now), held)
    run = state.run
    started_before = [kept[each] for each in run.earlier if each in kept] if run and (kept := kept_recordings()) else []
    if started_before:
        return _run_of(str(started_before[-1])), _run_of(path)
    other = next((other.path for _, other in recorded()[1:]), None) if name is None else None
    if other is None:
        raise Refusal(f"{path} holds {len(state.runs) or 'no'} run: name a second file to compare with")
    return _run_of(str(other)), _run_of(path)


def _run_of(name: str | None) -> _Run:
    path, number = numbered(name)
    state = fold(path, number)
    found = [run for run in state.runs if number in (None, run.run)]
    if not found:
        raise no_run(path, number)
    called = Path(path).name + ("" if number is None else f" run {number}")
    return _Run(figures(found[-1], state.now, called), _holders(state))


def _holders(state: State) -> Listed | None:
    found = chosen(state)
    return listed(found[0].window, found[0].hooked, By.LAYER) if found else None
