"""What was found about memory."""

from collections.abc import Iterator

from tfmemtop.state import State
from tfmemtop.state.fold import of_run
from tfmemtop.units import format_bytes
from tfmemtop.verdicts.finding import Finding


def out_of_memory(state: State) -> Iterator[Finding]:
    """The newest out-of-memory error of each process of the run."""
    for pid, process in state.processes.items():
        if not (process.hooked and process.hooked.out_of_memory and of_run(state, pid)):
            continue
        error = process.hooked.out_of_memory[-1]
        parts = [f"Out of memory in process {pid}"]
        if error.device:
            parts.append(f"on {error.device}")
        if error.requested is not None:
            parts.append(f"asking for {format_bytes(error.requested)}")
        if error.operation:
            parts.append(f"in {error.operation}")
        times = len(process.hooked.out_of_memory)
        more = f" ({times} such errors)" if times > 1 else ""
        # Without device, size or operation TensorFlow's own words are all there is to go by.
        said = "" if error.requested is not None else f": {error.message.splitlines()[0] if error.message else ''}"
        yield Finding("error", " ".join(parts) + more + said + ".", "[L] gives the next run another limit")
