"""The screen's text about a Jupyter kernel, which Jupyter starts and ends."""

from collections.abc import Sequence

TITLE = "This run is a kernel of Jupyter"
STAYS = "go on; they hold from its next restart"
NO_SERVER = (
    "No Jupyter server was found here that has this kernel and can be asked. Restart the kernel where the notebook is "
    "open: Kernel, Restart Kernel; in VS Code: Restart."
)
_CHOSEN = "It holds from the kernel's next restart. [R] restarts it."
_CHOSEN_OF_A_WINDOW = "It holds for each kernel that this window of VS Code starts from now on in the same folder."
RESTARTING = "Jupyter restarts the kernel"
NO_COMMAND_LINE = "The command line of a kernel is Jupyter's. Growth, limit, allocator and GPUs can be chosen."
NO_SEARCH = "A search runs a program again and again. A kernel is started by Jupyter. [L] sets its limit."


def chosen(*, apart: bool) -> str:
    """Return from when on a setting holds.

    *apart* if the start of another notebook's kernel can never be taken for a start of this one.
    """
    return _CHOSEN if apart else _CHOSEN_OF_A_WINDOW


def hold_from_restart(settings: Sequence[str], *, apart: bool) -> str:
    """Return which settings the kernel's next start has; *apart* as in :func:`chosen`."""
    holds = "That holds from its next restart, no matter who restarts it." if apart else _CHOSEN_OF_A_WINDOW
    return f"Its next start: {' · '.join(settings)}. {holds}"


def asks(address: str) -> str:
    """Return what tfmemtop requests from the Jupyter server at *address*."""
    return f"have Jupyter at {address} restart this kernel only; its variables are lost"


def not_restarted(detail: str) -> str:
    """Return the error for a server that was requested to restart the kernel, and did not do it."""
    return f"Jupyter has not restarted the kernel: {detail}. Restart it where the notebook is open."


def server_ends(kernels: int) -> str:
    """Return the warning before ending a run that has kernels: the run is the Jupyter server itself."""
    count = "its kernel" if kernels == 1 else f"its {kernels} kernels"
    return f"It is the server of Jupyter: this ends the server with {count}, and not only a kernel."
