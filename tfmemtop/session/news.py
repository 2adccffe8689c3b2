"""What a user who looks elsewhere wants to be told."""

from collections.abc import Iterable, Iterator

from tfmemtop.events import CaughtUp, Event, OutOfMemory, RunEnd
from tfmemtop.state import State
from tfmemtop.state.model import RunState


class News:
    """A run that ended by itself, and the first out-of-memory error of a run, each told once."""

    def __init__(self) -> None:
        self._ran_out_in: int | None = None
        self._present = False

    def of(self, batch: Iterable[Event], state: State) -> Iterator[OutOfMemory | RunState]:
        """What *batch*, which *state* has already, brings.

        A run that was ended from a screen is no news, nor is what happened before this screen was attached.
        """
        run = state.run
        for event in batch:
            if isinstance(event, CaughtUp):
                self._present = True
            elif run is None or not self._present:
                continue
            elif isinstance(event, OutOfMemory) and self._ran_out_in != run.run:
                self._ran_out_in = run.run
                yield event
            elif isinstance(event, RunEnd) and event.run == run.run and run.stopping is None:
                yield run
