"""Files that all starts of one Jupyter kernel share: their sessions, and the settings chosen for the next start.

Both files are beside the recordings. Their names are made from the text that is the same for all starts of a kernel
(``shared`` of :class:`tfmemtop.engine.process.launch.Kernel`); here, *kernel* is that text.
"""

import hashlib
import os
from pathlib import Path

import msgspec

from tfmemtop.home import output_folder
from tfmemtop.settings import Settings

ENDINGS = _SETTINGS, _SESSIONS = ".kernel.json", ".kernel.sessions"
"""How the names of these files end."""
_MOST = 20
"""How many earlier starts :func:`begin` returns."""


def choose(kernel: str, settings: Settings) -> None:
    """Store *settings* for the next starts of the kernel. The file is replaced as a whole or not at all.

    Raises:
        OSError: the file cannot be written.
    """
    path = _place(kernel, _SETTINGS)
    new = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        new.touch(mode=0o600)
        new.write_bytes(msgspec.json.encode(settings))
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def chosen(kernel: str) -> Settings | None:
    """Return the settings chosen for the kernel; ``None`` if there are none, or they cannot be read."""
    try:
        return msgspec.json.decode(_place(kernel, _SETTINGS).read_bytes(), type=Settings)
    except (OSError, msgspec.DecodeError):
        return None


def begin(kernel: str, session: str) -> tuple[int, tuple[str, ...]]:
    """Record that *session* is the newest start of the kernel.

    Return the number of this start, counted from 1, and the sessions of the newest starts before it.

    Raises:
        OSError: the file cannot be written or read.
    """
    path = _place(kernel, _SESSIONS)
    # Each line is appended in one write, so that both of two simultaneous starts are recorded.
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(f"{session}\n".encode())
    noted = path.read_text("utf-8", "replace").split()
    before = noted[: len(noted) - 1 - noted[::-1].index(session)]
    return len(before) + 1, tuple(before[-_MOST:])


def after(session: str) -> list[str]:
    """Return the sessions of the starts of the same kernel that came after *session*, oldest first."""
    try:
        for path in output_folder().glob(f"*{_SESSIONS}"):
            noted = path.read_text("utf-8", "replace").split()
            if session in noted:
                return noted[noted.index(session) + 1 :]
    except OSError:
        pass  # none is known
    return []


def _place(kernel: str, ending: str) -> Path:
    name = hashlib.sha256(os.fsencode(kernel)).hexdigest()[:16]
    return output_folder() / f"{name}{ending}"
