"""What the user should know about the watching itself."""

from collections.abc import Iterator

from tfmemtop.state import State
from tfmemtop.state.lookup import of_run
from tfmemtop.verdicts.finding import Finding


def notices(state: State) -> Iterator[Finding]:
    """The engine's notices: what is missing, and what brings it."""
    for notice in state.notices.values():
        yield Finding(notice.level, notice.text, notice.remedy, key=f"notice-{notice.key}")


def hooked_out(state: State) -> Iterator[Finding]:
    """A process of the run uses TensorFlow, and the hook could not get in."""
    for pid, process in state.processes.items():
        if process.seen.hooked_out and process.hooked is None and of_run(state, pid):
            reason = process.seen.hooked_out
            text = f"Process {pid} uses TensorFlow without the hook: {reason}. It is watched from outside."
            yield Finding("warning", text, "[Enter] on the process says more", key="hooked-out")
