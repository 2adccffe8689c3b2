"""Unix sockets that only their own user can reach."""

import socket
import struct
from pathlib import Path

_BACKLOG = 4096
"""Connections that may wait to be accepted, as far as the kernel allows: a run may begin with a thousand processes."""


def listen(path: Path, kind: socket.SocketKind) -> socket.socket:
    """Return a non-blocking listening socket at *path*.

    Raises:
        OSError: the socket cannot be made.
    """
    sock = socket.socket(socket.AF_UNIX, kind)
    sock.setblocking(False)
    sock.bind(str(path))
    path.chmod(0o600)
    sock.listen(_BACKLOG)
    return sock


def peer(sock: socket.socket) -> tuple[int, int]:
    """Return the numbers of the process and of the user at the other end of *sock*."""
    raw = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, uid, _ = struct.unpack("3i", raw)
    return pid, uid
