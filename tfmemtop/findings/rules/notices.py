"""What the user should know about tfmemtop's own work: a driver or hook that is missing, events that were left out."""

from collections.abc import Hashable, Iterator
from typing import NamedTuple

from tfmemtop import events
from tfmemtop.events import Notice, NoticeKind
from tfmemtop.findings.finding import Finding, Said, Severity
from tfmemtop.findings.remedy import Action, Remedy
from tfmemtop.findings.rules import rule
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


class Noticed(Finding, frozen=True):
    """The engine or the screen reported something that is missing or went wrong."""

    notice: events.Notice

    @property
    def severity(self) -> Severity:
        return _SEVERITIES[self.notice.level]

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        helps = say(self.notice).remedy
        return (Remedy(helps),) if helps else ()

    @property
    def kind(self) -> Hashable:
        return type(self), self.notice.key

    @property
    def of_state(self) -> bool:
        """Whether the notice reports that the state is not complete, so that a report on the run has gaps."""
        return self.notice.key.startswith(LEFT_OUT) or self.notice.kind is NoticeKind.RECORDING_ENDED

    @property
    def said(self) -> Said:
        return Said(f"{sentence(say(self.notice).text)}.")


@rule(300)
def notices(state: State) -> Iterator[Noticed]:
    """Yield the notices that hold now."""
    for notice in state.notices.values():
        yield Noticed(notice)


class HookAbsent(Finding, frozen=True):
    """A process of the run uses TensorFlow, and the hook is not in it; ``why`` is the reason."""

    remedies = (Action.SHOW_PROCESS,)

    pid: int
    why: events.HookAbsence

    @property
    def said(self) -> Said:
        text = f"Process {self.pid} uses TensorFlow without the hook: {self.why.text}."
        return Said(text, figures="It is watched from outside.")


@rule(70)
def hook_absent(state: State) -> Iterator[HookAbsent]:
    """Find processes of the run that use TensorFlow and that the hook could not get into."""
    for pid, process in state.processes.items():
        why = process.seen.hook_absence
        if why is not None and process.hooked is None and of_run(state, pid):
            yield HookAbsent(pid, why)


K = NoticeKind


class TextAndRemedy(NamedTuple):
    """What has happened, and what helps: two sentences without a full stop. The second may be empty."""

    text: str
    remedy: str = ""

    @property
    def line(self) -> str:
        """Both sentences in one line."""
        return f"{self.text}; {self.remedy}" if self.remedy else self.text


def say(notice: Notice) -> TextAndRemedy:
    """Return the text of *notice*; empty for a notice that withdraws another."""
    kind = notice.kind
    if kind is None:
        return TextAndRemedy("")
    if kind is K.ENGINE_GONE:
        return TextAndRemedy(_engine_gone(notice.about, notice.detail), "[q] quits")
    text = kind.text.format(about=notice.about, count=notice.count, detail=notice.detail)
    return TextAndRemedy(text, kind.remedy)


def _engine_gone(pid: int | None, output: str) -> str:
    text = "the engine has ended unexpectedly; these are the last figures that it read"
    if pid is None:
        return text
    where = f", and its output goes to {output}" if output else ""
    return f"{text}. The script, process {pid}, goes on{where}"
