"""The names of runs and processes for people."""

from pathlib import PurePath

from tfmemtop.programs import program
from tfmemtop.state.model import ProcessState, RunState


def title(run: RunState) -> str:
    """Return the name of *run*: the notebook of a Jupyter kernel, where it is known, else its :func:`program`."""
    return run.notebook or " ".join(program(run.argv))


def lasting(run: RunState) -> tuple[str, ...]:
    """Return the command line of *run*, without the connection file of a kernel, which may be new with each start."""
    return tuple(word for word in run.argv if run.kernel is None or PurePath(run.kernel).name not in word)


def command_and_program(process: ProcessState) -> tuple[str, str]:
    """Return the command line of *process*, and the part that :func:`program` keeps.

    They are computed once for each value of ``process.seen``.
    """
    seen = process.seen
    if process.words is None or process.words[0] is not seen:
        process.words = seen, " ".join(seen.command), " ".join(program(seen.command))
    return process.words[1:]


__all__ = ["command_and_program", "lasting", "program", "title"]
