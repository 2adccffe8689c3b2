"""``tfmemtop compare A.jsonl B.jsonl``: two runs side by side, and the difference in words."""

from pathlib import Path

import msgspec

from tfmemtop.commands.arguments import Arguments
from tfmemtop.commands.saying import say, tell, tell_json
from tfmemtop.compare import RunFigures, figures, rows, sentences
from tfmemtop.options import Refusal
from tfmemtop.recording import RecordingError, left_out, read
from tfmemtop.state import State, apply


def run(arguments: Arguments) -> int:
    """Print the comparison, as a table or as JSON; 0.

    Raises:
        Refusal: a file cannot be read, or there is no second run to compare with.
    """
    names = arguments.targets
    if len(names) == 1 and not numbered(names[0])[1]:
        state = fold(names[0])
        if len(state.runs) < 2:
            raise Refusal(f"{names[0]} holds {len(state.runs) or 'no'} run: name a second file to compare with")
        first, second = (figures(each, state.now) for each in state.runs[-2:])
    else:
        first, second = (_run_of(name) for name in (names * 2)[:2])
    if arguments.json:
        told = {
            "runs": [first, second],
            "differences": {
                name: _difference(getattr(first, name), getattr(second, name))
                for name in ("duration_s", "peak_in_use", "peak_pool", "peak_process_total", "out_of_memory")
            },
            "sentences": sentences(first, second),
        }
        tell_json(msgspec.json.format(msgspec.json.encode(told)))
    else:
        tell(table(first, second))
    return 0


def fold(path: str) -> State:
    """The state at the end of the recording *path*.

    Raises:
        Refusal: it cannot be read.
    """
    state = State()
    try:
        recording = read(Path(path))
        for event in recording.events():
            apply(state, event)
    except RecordingError as error:
        raise Refusal(str(error)) from error
    if recording.damaged:
        say(left_out(recording))
    return state


def table(first: RunFigures, second: RunFigures) -> list[str]:
    """The two runs as lines of text."""
    found = rows(first, second)
    width = max(len(row.label) for row in found) + 2
    left = max(len(first.name), *(len(row.first) for row in found)) + 2
    right = max(len(second.name), *(len(row.second) for row in found)) + 2
    lines = [f"{'':{width}}{first.name:{left}}{second.name}"]
    lines += [f"{row.label:{width}}{row.first:{left}}{row.second:{right}}{row.difference}".rstrip() for row in found]
    return [*lines, "", *sentences(first, second)]


def _run_of(name: str) -> RunFigures:
    path, number = numbered(name)
    state = fold(path)
    found = [run for run in state.runs if number in (None, run.run)]
    if not found:
        raise Refusal(f"{path} holds no run" + ("" if number is None else f" {number}"))
    return figures(found[-1], state.now, Path(path).name + ("" if number is None else f" run {number}"))


def numbered(name: str) -> tuple[str, int | None]:
    """``run.jsonl:2`` as the file and the run's number, unless there is a file of just that name."""
    path, colon, number = name.rpartition(":")
    if colon and path and number.isascii() and number.isdigit() and not Path(name).exists():
        return path, int(number)
    return name, None


def _difference(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else round(b - a, 3)
