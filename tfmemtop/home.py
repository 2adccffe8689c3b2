"""The user's home folder, below which tfmemtop keeps its files. ``pyproject.toml`` forbids ``Path.home`` elsewhere."""

from pathlib import Path


def home() -> Path:
    """Return the user's home folder; ``/``, as in most container runtimes, if it is not known.

    It is not known if ``HOME`` is not set and the system has no entry for the user, such as the ``runAsUser`` of a pod.
    """
    try:
        return Path.home()  # noqa: TID251 (here only)
    except RuntimeError:
        return Path("/")
