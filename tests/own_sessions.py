"""The sessions that a test itself has started."""

import os

from tfmemtop.engine.stream.folders import SessionInfo, sessions


def own_sessions() -> list[SessionInfo]:
    """Return the sessions in ``$XDG_RUNTIME_DIR``. Each test has its own such folder.

    ``sessions()`` also finds those in shared folders: sessions of other tests, and of the user who runs the tests.
    """
    return [session for session in sessions() if session.socket.startswith(f"{os.environ['XDG_RUNTIME_DIR']}/")]
