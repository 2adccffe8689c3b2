"""What all starts of one Jupyter kernel share: their sessions, and the settings that were chosen for the next start.

Both lie beside the recordings, by what :func:`tfmemtop.notebooks.origin.shared_by_starts` says of the kernel.
"""

import os
import time
from pathlib import Path

import msgspec

from tfmemtop.engine.stream.folders import output_folder
from tfmemtop.settings import Settings

_SETTINGS, _SESSIONS = ".kernel.json", ".kernel.sessions"
_KEPT_DAYS = 30
_MOST = 20
"""Earlier starts that are told of."""


def choose(kernel: str, settings: Settings) -> None:
    """Keep *settings* for the next starts of the kernel, whole or not at all.

    Raises:
        OSError: they cannot be written.
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
    """What was chosen for the kernel; ``None`` if nothing was, or it cannot be read."""
    try:
        return msgspec.json.decode(_place(kernel, _SETTINGS).read_bytes(), type=Settings)
    except (OSError, msgspec.DecodeError):
        return None


def begin(kernel: str, session: str) -> tuple[int, tuple[str, ...]]:
    """Note that *session* is the newest start of the kernel: its number, from 1, and the newest of those before it.

    Raises:
        OSError: it cannot be noted.
    """
    path = _place(kernel, _SESSIONS)
    # Lines are appended as a whole: of two starts at once both are noted.
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(f"{session}\n".encode())
    noted = path.read_text("utf-8", "replace").split()
    before = noted[: len(noted) - 1 - noted[::-1].index(session)]
    return len(before) + 1, tuple(before[-_MOST:])


def after(session: str) -> list[str]:
    """The sessions of those starts of the same kernel that came after *session*, oldest first."""
    try:
        for path in output_folder().glob(f"*{_SESSIONS}"):
            noted = path.read_text("utf-8", "replace").split()
            if session in noted:
                return noted[noted.index(session) + 1 :]
    except OSError:
        pass  # none is known
    return []


def forget_old() -> None:
    """Remove what has not changed for thirty days.

    Raises:
        OSError: it cannot be removed, or the folder cannot be read.
    """
    oldest = time.time() - _KEPT_DAYS * 86_400
    for ending in (_SETTINGS, _SESSIONS):
        for path in output_folder().glob(f"*{ending}"):
            if path.stat().st_mtime < oldest:
                path.unlink()


def _place(kernel: str, ending: str) -> Path:
    import hashlib  # and OpenSSL with it: only where there is a kernel

    name = hashlib.sha256(os.fsencode(kernel)).hexdigest()[:16]
    return output_folder() / f"{name}{ending}"
