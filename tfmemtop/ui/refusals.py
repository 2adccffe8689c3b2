"""The text about why a key on the screen does nothing now: one or two sentences, where ``[K]`` names another key."""

from collections.abc import Sequence

from tfmemtop.experiments.session.session import Session
from tfmemtop.findings.rules.attached import READ_ONLY
from tfmemtop.frameworks import FrameworkName, UsedFramework

NOT_RECOGNISED = (
    "VS Code gives a kernel another name at each start, so no choice here can reach the next one. "
    "Set it for the kernelspec: tfmemtop kernel install --help."
)
NO_COMMAND_LINE = "The command line of a kernel is Jupyter's. Growth, limit, allocator and GPUs can be chosen."


def not_for(frameworks: Sequence[UsedFramework], setting: str, *, has_gpus: bool) -> str:
    """Return why the next run cannot have a *setting*, such as ``growth``; its *frameworks* are not TensorFlow."""
    names = " and ".join(framework.name.title for framework in frameworks)
    if not has_gpus:
        return f"No GPU is known here, so there is nothing to set for {names}."
    torch = next((framework for framework in frameworks if framework.name is FrameworkName.PYTORCH), None)
    if torch and setting == "growth":
        return "Not for PyTorch: its pool always grows."
    if torch and setting == "limit":
        return (
            f"Not for PyTorch {torch.version}, which takes a limit from its environment from 2.10 on. In the script: "
            "torch.cuda.set_per_process_memory_fraction(0.5)."
        )
    return f"Not for {names}: {setting} is TensorFlow's."


def restart_yourself(settings: Sequence[str]) -> str:
    """Return why a kernel is not relaunched, and which *settings* its next start has."""
    return f"Restart the kernel where the notebook is open. Its next start: {' · '.join(settings)}."


def no_change(session: Session) -> str:
    """Return why a key cannot change the script or a process: a replay, a read-only screen, or a process not ours."""
    if session.replay is not None:
        return "This is a recording: nothing in it can be changed."
    if session.outside:
        return READ_ONLY
    return "This screen is read-only: no key changes the script or a process."
