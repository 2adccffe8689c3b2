"""The rule about how the newest run ended, and what can be done next."""

import signal
from collections.abc import Iterator
from dataclasses import dataclass

from tfmemtop.ending import Ending
from tfmemtop.events import StillHeld, StoppingPhase
from tfmemtop.rules.finding import Finding, Severity
from tfmemtop.rules.remedy import Action, Remedy
from tfmemtop.state import State

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


@dataclass(frozen=True, slots=True)
class MemoryReleasing(Finding):
    """The run's processes are gone, and the GPU's memory is not free again yet."""

    aside = True
    severity = Severity.INFO

    run: int


@dataclass(frozen=True, slots=True)
class MemoryHeld(Finding):
    """The run's processes are gone, but GPU memory or processes of it are left, as ``held`` names them."""

    run: int
    held: StillHeld


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
