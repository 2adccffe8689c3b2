"""The report on the memory of the run's processes, as text: what each part of it is."""

from collections.abc import Iterator

from tfmemtop.state import State
from tfmemtop.state.breakdown import breakdowns
from tfmemtop.state.lookup import of_run
from tfmemtop.words import breakdown as words
from tfmemtop.words.account import others_say, why_they_differ
from tfmemtop.words.safe import safe

_NAME, _FIGURE = 14, 11  # characters


def account(state: State) -> list[str]:
    """Return the parts of the memory, for each process of the newest run and each of its devices, as lines of text.

    The parts add up to the total. Empty where no process is read.
    """
    return [safe(line) for pid in state.processes if of_run(state, pid) for line in _of_process(state, pid)]


def _of_process(state: State, pid: int) -> Iterator[str]:
    for found in breakdowns(state, pid):
        yield f"Process {pid}. {words.heading(found)}"
        for part in found.slices:
            share = f"{part.size / found.size:4.0%}" if found.size else ""
            named = f"  {words.name(part.part):{_NAME}} {words.figure(part):>{_FIGURE}} {share:>4}"
            yield f"{named}  {words.meaning(part, found)}".rstrip()
        yield from (f"  {note}" for note in words.notes(found))
        if found.account is not None:
            yield from (f"  {name}: {said}" for name, said in others_say(found.account))
            if sentence := why_they_differ(found.account):
                yield f"  {sentence}"
