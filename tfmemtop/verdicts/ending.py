"""How the run ended, and what can be done next."""

import signal
from collections.abc import Iterator

from tfmemtop.state import State
from tfmemtop.state.model import RunState
from tfmemtop.units import format_duration
from tfmemtop.verdicts.finding import Finding

NEXT = "[R] runs it again, [G] [L] [A] [V] [E] change how, [q] quits"


def ending(run: RunState) -> str:
    """``ended with exit code 1``, ``ended by SIGTERM`` or the kernel's word, as far as known; empty while it goes."""
    if run.ended is None:
        return ""
    if run.oom_killed:
        return "killed by the kernel: the host ran out of memory"
    if run.signal is not None:
        return f"ended by {signal_name(run.signal)}"
    if run.exit_code is None:
        return "ended, it was not seen how"
    return f"ended with exit code {run.exit_code}"


def signal_name(number: int) -> str:
    """``SIGTERM`` for 15; ``signal 99`` for what has no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def how_it_ended(state: State) -> Iterator[Finding]:
    """The newest run is over."""
    run = state.run
    if run is None or run.ended is None:
        return
    stopping = run.stopping
    if stopping and stopping.phase == "releasing":
        text = f"Run {run.run} has ended; waiting until the GPU has its memory back. {stopping.detail}".rstrip()
        yield Finding("info", text, key="releasing")
        return
    if stopping and stopping.phase == "held":
        text = f"Run {run.run} has ended, but its memory is not all free again: {stopping.detail}"
        yield Finding("warning", text, key="held")
    text = f"Run {run.run} {ending(run)} after {format_duration(run.ended - run.started)}; this is its last picture."
    yield Finding("info" if run.exit_code == 0 else "warning", text, NEXT, key="ended")
