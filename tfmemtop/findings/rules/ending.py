"""The rule about how the newest run ended, and what can be done next."""

import signal
from collections.abc import Iterator

from tfmemtop.events import Leftover, StillHeld, StoppingPhase
from tfmemtop.events.runs import Ending, Way
from tfmemtop.exit_codes import signal_name
from tfmemtop.findings.finding import Finding, Said, Severity
from tfmemtop.findings.remedy import Action, Remedy
from tfmemtop.findings.rules import rule
from tfmemtop.findings.rules.attached import WENT_ON
from tfmemtop.state import State
from tfmemtop.units import format_bytes, sentence, spoken

_SENT = (signal.SIGTERM, signal.SIGKILL)
"""The signals with which tfmemtop ends a run."""


class RunEnded(Finding, frozen=True):
    """Run number ``run`` is over, and no next one has been started; ``stopped`` if tfmemtop ended it."""

    aside = True

    run: int
    how: Ending
    took_s: float
    stopped: bool = False
    ours: bool = True  # tfmemtop had started it, and can do so again
    has_gpus: bool = True

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        change = Action.CHANGE_SETTINGS if self.has_gpus else Action.CHANGE_WITHOUT_GPU
        return (Action.RUN_AGAIN, change, Action.QUIT) if self.ours else (Action.QUIT,)

    @property
    def severity(self) -> Severity:
        return Severity.INFO if self.how.good or self.stopped or not self.how.known else Severity.WARNING

    @property
    def said(self) -> Said:
        after = f"after {spoken(self.took_s)}"
        if self.stopped:
            return Said(f"tfmemtop ended run {self.run} {after}.", figures=_FINAL)
        return Said(f"Run {self.run} {ending(self.how)} {after}.", figures=_FINAL)


class MemoryReleasing(Finding, frozen=True):
    """The run's processes are gone, and the GPU's memory is not free again yet."""

    aside = True
    severity = Severity.INFO

    run: int

    @property
    def said(self) -> Said:
        return Said(f"Run {self.run} has ended.", figures="tfmemtop waits until its GPU memory is free.")


class MemoryHeld(Finding, frozen=True):
    """The run's processes are gone, but GPU memory or processes of it are left, as ``held`` names them."""

    run: int
    held: StillHeld

    @property
    def said(self) -> Said:
        return Said(
            f"Run {self.run} has ended, but not all of its memory is free.",
            figures=f"{sentence(still_held(self.held))}.",
        )


@rule(265)
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
    yield RunEnded(run.run, run.ending, run.ended - run.started, stopped, not run.outside, bool(state.devices))


_FINAL = "Showing its final state."


RUNNING = "running"

UNSEEN = "how it ended is unknown"
"""For a recording that breaks off before the run's end."""


def ended(how: Ending | None, *, running: bool, left: bool) -> str:
    """Return how a run ended. Without an end, it is *running*, or tfmemtop has *left* it, or its end was not seen."""
    if how is not None:
        return ending(how)
    return RUNNING if running else WENT_ON if left else UNSEEN


def ending(how: Ending | None) -> str:
    """Return how a run ended: ``ended with exit code 1``, ``ended by SIGTERM``; ``running`` for ``None``."""
    if how is None:
        return RUNNING
    if how.way is Way.HOST_MEMORY:
        return "killed by the kernel: host memory ran out"
    if not how.known:
        return "ended with an unknown exit code"
    if how.way is Way.SIGNAL:
        return f"ended by {signal_name(how.number or 0)}"
    behind = f" ({signal_name(how.signal)})" if how.signal is not None else ""
    return f"ended with exit code {how.number}{behind}"


def still_held(held: StillHeld) -> str:
    """Return what a run still holds after its end."""
    if held.leftover is Leftover.LISTED:
        size = f", {format_bytes(held.size)}" if held.size is not None else ""
        return f"GPU {held.gpu} still lists process {', '.join(map(str, held.pids))}{size}"
    if held.leftover is Leftover.MORE_USED:
        more = f"{format_bytes(held.size)} more" if held.size is not None else "more"
        return f"GPU {held.gpu} holds {more} than before the run"
    if held.leftover is Leftover.PROCESSES:
        return f"the kernel has not ended process {', '.join(map(str, held.pids))}"
    return "the driver does not answer, so it is unknown what is still held"
