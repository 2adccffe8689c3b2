"""The events of which the user is notified, since another window may be in front of the terminal."""

from collections.abc import Iterable, Iterator

from tfmemtop.events import CaughtUp, Event, OutOfMemory, RunEnd
from tfmemtop.state import State
from tfmemtop.state.model import RunState


class News:
    """Finds the runs that ended by themselves, and the first out-of-memory error of each run; each is returned once."""

    def __init__(self) -> None:
        self._ran_out_in: int | None = None
        self._present = False

    def of(self, batch: Iterable[Event], state: State) -> Iterator[OutOfMemory | RunState]:
        """Return the news in *batch*: out-of-memory errors, and runs that have ended.

        *state* contains the events of *batch* already. A run that was ended from a screen is not news, and nothing
        that happened before this screen was attached is.
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
