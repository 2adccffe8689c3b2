"""The rule about how the newest run ended, and what can be done next."""

import signal
from collections.abc import Iterator
from dataclasses import dataclass

from tfmemtop.ending import Ending
from tfmemtop.events import StillHeld, StoppingPhase
from tfmemtop.findings.finding import Finding, Said, Severity
from tfmemtop.findings.remedy import Action, Remedy
from tfmemtop.state import State
from tfmemtop.words.counting import sentence, spoken
from tfmemtop.words.endings import ending, still_held

_SENT = (signal.SIGTERM, signal.SIGKILL)
"""The signals with which tfmemtop ends a run."""


@dataclass(frozen=True, slots=True)
class RunEnded(Finding):
    """Run number ``run`` is over, and no next one has been started; ``stopped`` if tfmemtop ended it."""

    aside = True

    run: int
    how: Ending
    took_s: float
    stopped: bool = False
    ours: bool = True  # tfmemtop had started it, and can do so again

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        again = (Remedy(Action.RUN_AGAIN), Remedy(Action.CHANGE_SETTINGS)) if self.ours else ()
        return *again, Remedy(Action.QUIT)

    @property
    def severity(self) -> Severity:
        return Severity.INFO if self.how.good or self.stopped else Severity.WARNING

    @property
    def said(self) -> Said:
        after = f"after {spoken(self.took_s)}"
        if self.stopped:
            return Said(f"tfmemtop ended run {self.run} {after}.", figures=_FINAL)
        return Said(f"Run {self.run} {ending(self.how)} {after}.", figures=_FINAL)


@dataclass(frozen=True, slots=True)
class MemoryReleasing(Finding):
    """The run's processes are gone, and the GPU's memory is not free again yet."""

    aside = True
    severity = Severity.INFO

    run: int

    @property
    def said(self) -> Said:
        return Said(f"Run {self.run} has ended.", figures="tfmemtop waits until its GPU memory is free.")


@dataclass(frozen=True, slots=True)
class MemoryHeld(Finding):
    """The run's processes are gone, but GPU memory or processes of it are left, as ``held`` names them."""

    run: int
    held: StillHeld

    @property
    def said(self) -> Said:
        return Said(
            f"Run {self.run} has ended, but not all of its memory is free.",
            figures=f"{sentence(still_held(self.held))}.",
        )


def how_it_ended(state: State) -> Iterator[RunEnded | MemoryReleasing | MemoryHeld]:
    """Yield how the newest run ended, if it did, and whether its GPU memory is free again."""
    run = state.run
    if run is None or run.ended is None or run.ending is None:
        return
    stopping = run.stopping
    if stopping and stopping.phase is StoppingPhase.RELEASING:
        yield MemoryReleasing(run.run)
        return
    if stopping and stopping.held:
        yield MemoryHeld(run.run, stopping.held)
    stopped = run.stopped and run.ending.signal in _SENT
    yield RunEnded(run.run, run.ending, run.ended - run.started, stopped, not run.outside)


_FINAL = "Showing its final state."
