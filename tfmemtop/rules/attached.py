"""A process that tfmemtop did not start: how far it can be read, and what is not known of it."""

from collections.abc import Iterator
from dataclasses import dataclass

from tfmemtop import events
from tfmemtop.rules.finding import Finding, Severity
from tfmemtop.state import State
from tfmemtop.state.lookup import of_run

_FINE = (events.OutsideState.READING, events.OutsideState.STOPPED, events.OutsideState.NO_DEVICES)


@dataclass(frozen=True, slots=True)
class ReadFromOutside(Finding):
    """What ``told`` says of a process that is, or cannot be, read from outside; ``injection`` of a hook for it."""

    aside = True  # a report says so of the run itself

    told: events.Outside
    injection: events.Injection | None = None

    @property
    def severity(self) -> Severity:
        refused = self.injection is not None and not self.injection.state.under_way
        return Severity.WARNING if refused or (self.told.state not in _FINE and self.blocked) else Severity.INFO

    @property
    def blocked(self) -> bool:
        """Whether something stands in the way that nobody needs to wait for."""
        return not self.told.state.may_change and self.told.state not in _OVER


_OVER = (events.OutsideState.GONE, events.OutsideState.LEFT)


def read_from_outside(state: State) -> Iterator[ReadFromOutside]:
    """A process of the newest run is read from outside, or has left something behind that goes on."""
    for pid, process in state.processes.items():
        told = process.outside
        if told is not None and of_run(state, pid) and (told.state not in _OVER or told.detail):
            yield ReadFromOutside(told, process.injection)
