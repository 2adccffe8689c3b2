"""What the user should know about the watching itself, and about settings that did not take."""

from collections.abc import Iterator
from pathlib import PurePath

from tfmemtop.state import State
from tfmemtop.state.fold import of_run
from tfmemtop.verdicts.finding import Finding


def notices(state: State) -> Iterator[Finding]:
    """The engine's notices: what is missing, and what brings it."""
    for notice in state.notices.values():
        yield Finding(notice.level, notice.text, notice.remedy)


def hooked_out(state: State) -> Iterator[Finding]:
    """A process of the run uses TensorFlow, and the hook could not get in."""
    for pid, process in state.processes.items():
        if process.seen.hooked_out and process.hooked is None and of_run(state, pid):
            reason = process.seen.hooked_out
            text = f"Process {pid} uses TensorFlow without the hook: {reason}. It is watched from outside."
            yield Finding("warning", text, "[Enter] on the process says more")


def script_settings_failed(state: State) -> Iterator[Finding]:
    """The script asked TensorFlow for a setting and got an error."""
    for pid, process in state.processes.items():
        if not (process.hooked and of_run(state, pid)):
            continue
        for request in process.hooked.requested:
            if request.error:
                where = f"{PurePath(request.file).name}:{request.line}"
                asked = f"{request.call}({request.arguments})"
                yield Finding("warning", f"{where}: {asked} had no effect, it raised {request.error}")
                break  # the first is the telling one; details list them all
