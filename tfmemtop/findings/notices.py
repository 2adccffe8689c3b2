"""The rules for what the user should know about tfmemtop's own work, such as a driver that is missing."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from tfmemtop import events
from tfmemtop.findings.finding import Finding, Said, Severity
from tfmemtop.findings.notice_texts import reason_text, say
from tfmemtop.findings.remedy import Action, Remedy
from tfmemtop.state import State
from tfmemtop.state.lookup import of_run
from tfmemtop.units import sentence

LEFT_OUT = "left-out"
"""The beginning of a notice's key if parts of the run's events were left out."""

_SEVERITIES = {
    events.Level.ERROR: Severity.ERROR,
    events.Level.WARNING: Severity.WARNING,
    events.Level.INFO: Severity.INFO,
}

K = events.NoticeKind
HELPED = frozenset(
    (
        *(K.NO_DRIVER, K.NO_GPU, K.DRIVER_MISMATCH, K.DRIVER_FORBIDDEN, K.DRIVER_FAILED, K.DRIVER_SILENT, K.GPU_LOST),
        *(K.PROCESSES_RENUMBERED, K.PROCESSES_HIDDEN, K.OUTPUT_FILE_MISSING, K.OUTPUT_FILE_FAILED),
        *(K.RECORDING_ENDED, K.SESSION_UNRECORDED, K.SESSION_TOO_LARGE, K.SESSION_DISK_FULL, K.SESSION_FILE_TAKEN),
        *(K.HOOKS_WAIT, K.ENGINE_GONE, K.ATTACH_BESIDE_SCRIPT),
        *(K.EXPORTER_ENDED, K.METRICS_FILE_FAILED, K.METRICS_SD_LEFT),
    )
)
"""The kinds of notice that come with a remedy."""


@dataclass(frozen=True, slots=True)
class Noticed(Finding):
    """The engine or the screen reported something that is missing or went wrong."""

    notice: events.Notice

    @property
    def severity(self) -> Severity:
        return _SEVERITIES[self.notice.level]

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        return (Remedy(Action.AS_NOTICE_SAYS, notice=self.notice),) if self.notice.kind in HELPED else ()

    @property
    def kind(self) -> Hashable:
        return type(self), self.notice.key

    @property
    def of_state(self) -> bool:
        """Whether the notice reports that the state is not complete, so that a report on the run has gaps."""
        return self.notice.key.startswith(LEFT_OUT)

    @property
    def said(self) -> Said:
        return Said(f"{sentence(say(self.notice).text)}.")


def notices(state: State) -> Iterator[Noticed]:
    """Yield the notices that hold now."""
    for notice in state.notices.values():
        yield Noticed(notice)


@dataclass(frozen=True, slots=True)
class HookAbsent(Finding):
    """A process of the run uses TensorFlow, and the hook is not in it; ``why`` is the reason."""

    remedies = (Remedy(Action.SHOW_PROCESS),)

    pid: int
    why: events.HookAbsence

    @property
    def said(self) -> Said:
        why = reason_text(self.why)
        return Said(
            f"Process {self.pid} uses TensorFlow without the hook: {why}.", figures="It is watched from outside."
        )


def hook_absent(state: State) -> Iterator[HookAbsent]:
    """Find processes of the run that use TensorFlow and that the hook could not get into."""
    for pid, process in state.processes.items():
        why = process.seen.hook_absence
        if why is not None and process.hooked is None and of_run(state, pid):
            yield HookAbsent(pid, why)
