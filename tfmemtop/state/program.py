"""What runs and processes are called."""

from pathlib import PurePath

from tfmemtop.programs import program
from tfmemtop.state.model import ProcessState, RunState


def title(run: RunState) -> str:
    """What *run* is called: the notebook of a Jupyter kernel, where it is known, else its :func:`program`."""
    return run.notebook or " ".join(program(run.argv))


def lasting(run: RunState) -> tuple[str, ...]:
    """The command line of *run*; of a Jupyter kernel without the connection file, which may be new with each start."""
    return tuple(word for word in run.argv if run.kernel is None or PurePath(run.kernel).name not in word)


def command_and_program(process: ProcessState) -> tuple[str, str]:
    """The command line of *process*, and what of it :func:`program` leaves; worked out once for what was seen."""
    seen = process.seen
    if process.words is None or process.words[0] is not seen:
        process.words = seen, " ".join(seen.command), " ".join(program(seen.command))
    return process.words[1:]


__all__ = ["command_and_program", "lasting", "program", "title"]
