"""The rule for processes of the run that hold GPU memory without TensorFlow."""

from collections.abc import Iterator
from dataclasses import dataclass

from tfmemtop.findings.finding import DeviceFinding, Question, Said, Severity
from tfmemtop.findings.others import script_name
from tfmemtop.findings.places import Place, place_name
from tfmemtop.state import State
from tfmemtop.state.account import USUAL_CONTEXT
from tfmemtop.state.lookup import of_run
from tfmemtop.state.model import ProcessState
from tfmemtop.units import format_bytes

SETTLED_S = 15.0
"""Seconds that a process has to import TensorFlow and make its devices, or to be seen using it without the hook."""


@dataclass(frozen=True, slots=True)
class HeldBeside(DeviceFinding):
    """Process ``pid`` of the run, which runs ``script``, holds ``used`` bytes of a card, and not through TensorFlow.

    ``script`` is empty where it is not known. ``imported`` if it has imported TensorFlow, which then has no GPU there.
    """

    answers = Question.REPORTS_LESS
    severity = Severity.INFO

    pid: int
    script: str
    used: int
    imported: bool

    @property
    def said(self) -> Said:
        script = f" ({self.script})" if self.script else ""
        why = (
            "TensorFlow is imported there, and has made no device."
            if self.imported
            else "It has not imported TensorFlow."
        )
        return Said(
            f"{place_name(self.place)}: process {self.pid}{script} holds {format_bytes(self.used)} outside TensorFlow.",
            "Another library uses CUDA in this process of the run (JAX, PyTorch, CuPy, RAPIDS). A CUDA context alone "
            f"takes {format_bytes(USUAL_CONTEXT)} on an H200. No setting of TensorFlow changes what it holds. "
            "TensorFlow in other processes gets what it leaves.",
            figures=why,
        )


def held_beside(state: State) -> Iterator[HeldBeside]:
    """Find processes of the run that have memory on a card, and in which TensorFlow has made no devices."""
    for index, card in state.devices.items():
        for pid, share in card.by_pid.items():
            process = state.processes.get(pid)
            if process is None or not share.used or not of_run(state, pid) or not _without(process, state.now):
                continue
            script = script_name(process)
            yield HeldBeside(Place(index), pid, script, share.used, imported=process.hooked is not None)


def _without(process: ProcessState, now: float) -> bool:
    """Return whether TensorFlow has made no devices in *process*, although there was time for it."""
    hooked = process.hooked
    if process.outside is not None:
        return False  # TensorFlow's share is not known until its pools are read
    if hooked is None:
        return process.seen.hook_absence is None and now - process.seen.t >= SETTLED_S
    devices = hooked.effective or hooked.allocators or hooked.initialised
    return not devices and now - hooked.hello.t >= SETTLED_S
