"""The finding for a process that tfmemtop did not start: how far its memory can be read from outside."""

from collections.abc import Iterator
from dataclasses import dataclass

from tfmemtop import events
from tfmemtop.events import OutsideState
from tfmemtop.findings.finding import Finding, Said, Severity
from tfmemtop.findings.injection import offer
from tfmemtop.findings.injection import sentence as sentence_of_injection
from tfmemtop.findings.outside_text import NOT_DONE, NOT_DONE_WITHIN, NOT_KNOWN, NOT_KNOWN_OF_BEFORE
from tfmemtop.findings.outside_text import sentence as sentence_of
from tfmemtop.state import State
from tfmemtop.state.lookup import of_run

_FINE = (events.OutsideState.READING, events.OutsideState.STOPPED, events.OutsideState.NO_DEVICES)


@dataclass(frozen=True, slots=True)
class ReadFromOutside(Finding):
    """A process is read from outside, or cannot be.

    ``told`` is the event that reports how far the reading has come. ``injection`` reports on putting the hook into the
    process, where that was requested.
    """

    aside = True  # a report shows this with the run itself

    told: events.Outside
    injection: events.Injection | None = None

    @property
    def severity(self) -> Severity:
        refused = self.injection is not None and not self.injection.state.under_way
        return Severity.WARNING if refused or (self.told.state not in _FINE and self.blocked) else Severity.INFO

    @property
    def blocked(self) -> bool:
        """Whether something prevents the reading that the process itself cannot change, so that waiting is useless."""
        return not self.told.state.may_change and self.told.state not in _OVER

    @property
    def said(self) -> Said:
        if self.told.state is OutsideState.HOOKED:
            return Said(sentence_of(self.told), figures=f"{NOT_KNOWN_OF_BEFORE} {NOT_DONE_WITHIN}")
        text = " ".join([sentence_of(self.told), *([sentence_of_injection(self.injection)] if self.injection else [])])
        more = [] if self.injection else [offer(self.told)]
        figures = " ".join(filter(None, [NOT_KNOWN, NOT_DONE, *more]))
        return Said(text, figures="" if self.blocked or self.told.detail else figures)


_OVER = (events.OutsideState.GONE, events.OutsideState.LEFT)


def read_from_outside(state: State) -> Iterator[ReadFromOutside]:
    """Find the processes of the newest run that are read from outside, or that ended with children still running."""
    for pid, process in state.processes.items():
        told = process.outside
        if told is not None and of_run(state, pid) and (told.state not in _OVER or told.detail):
            yield ReadFromOutside(told, process.injection)
