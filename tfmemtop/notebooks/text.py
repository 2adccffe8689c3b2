"""The text about kernels and notebooks."""

import shlex

from tfmemtop.notebooks.python import Why

START_NEEDS_COMMAND = "kernel start needs the kernel's command; for example: tfmemtop kernel install"
USER_OR_PREFIX = "--user and --prefix contradict each other; give one of them"
NONE_INSTALLED = "no kernel of tfmemtop is installed; add one: tfmemtop kernel install"
AFTER_INSTALLING = "Choose it in Jupyter or VS Code; then, in a terminal: tfmemtop attach"


def no_command(action: str) -> str:
    """Return the error for a command after ``--`` where it has no meaning."""
    return f"kernel {action} takes no command after --"


def bad_name(name: str) -> str:
    """Return the error for a name that Jupyter does not allow."""
    return f"{name!r} is not a name for a kernel; use letters, digits and . _ - only"


def unfit(why: Why, python: str, detail: str) -> str:
    """Return why kernels cannot run in that Python, and what to do about it."""
    quoted = shlex.quote(python)
    match why:
        case Why.NONE:
            return "there is no python in PATH; name one: tfmemtop kernel install --python FILE"
        case Why.NOT_RUN:
            return f"{python} does not run: {detail or 'it said nothing'}"
        case Why.TOO_OLD:
            return f"{python} is Python {detail}; tfmemtop watches 3.9 and newer"
        case Why.NO_IPYKERNEL:
            return f"{python} has no ipykernel; install it: {quoted} -m pip install ipykernel"


def installed(title: str, path: str) -> str:
    """Return which kernel was added, and where."""
    return f'the kernel "{title}" is in {path}'


def hidden_by_vs_code(name: str, title: str) -> str:
    """Return the warning that VS Code does not list the kernel that was added."""
    return (
        f'VS Code does not list the kernel "{title}" ({name}): it hides names such as python3, and display names that '
        "begin with Python 3"
    )


def not_installed(name: str) -> str:
    """Return the error for a kernel that tfmemtop has not installed."""
    return f"tfmemtop has installed no kernel {name!r} here; tfmemtop kernel list shows those there are"


def removed(folder: str) -> str:
    """Return the line about a kernelspec that was removed."""
    return f"removed {folder}"


def kernel_alone(reason: str) -> str:
    """Return the line for a kernel that starts, but not as a session."""
    return f"this kernel runs without tfmemtop: {reason}"


def no_kernel(python: str, reason: str) -> str:
    """Return the error for a kernel whose Python cannot be started."""
    return f"the kernel cannot be started: {python}: {reason}"


def not_ours(folder: str) -> str:
    """Return the error for a name that a kernelspec not made by tfmemtop already has."""
    return f"{folder}: there is a kernelspec of this name that tfmemtop did not make"
