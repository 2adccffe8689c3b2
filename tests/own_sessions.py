"""The sessions that a test itself has started."""

import os

from tfmemtop.engine.stream.folders import SessionInfo, sessions


def own_sessions() -> list[SessionInfo]:
    """Those in ``$XDG_RUNTIME_DIR``, which each test has to itself.

    ``sessions()`` also finds those in folders that all share: of other tests, and of who runs the tests.
    """
    return [session for session in sessions() if session.socket.startswith(f"{os.environ['XDG_RUNTIME_DIR']}/")]
