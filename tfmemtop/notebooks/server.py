"""Jupyter's server, found as its own tools find it, and asked by its own API to restart one kernel.

A running server writes ``jpserver-PID.json`` into Jupyter's runtime folder, which only its user can read: its address
and its token. Of its API only the list of kernels is read, and ``restart`` of one of them is called, never anything
that ends the server.
"""

import json
import os
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

_FILES = "*server-*.json"  # those of the classic notebook, too
_KERNEL = re.compile(r"kernel-([0-9A-Za-z-]+)\.json")
_PATIENCE_S = 10.0
_RESTART_S = 120.0
_HERE = ("localhost", "127.0.0.1", "::1", "0.0.0.0", "")


class NotRestarted(Exception):
    """The server did not restart the kernel; ``detail`` is what it, or the system, said."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class Server(NamedTuple):
    """A server that has the kernel with the number ``kernel``. Its ``token`` is nobody's but the user's."""

    url: str
    kernel: str
    token: str


def find(connection: str) -> Server | None:
    """The server of this user and machine whose kernel has the *connection* file; ``None`` if there is none.

    It is asked, which takes up to ten seconds where a server does not answer.
    """
    named = _KERNEL.fullmatch(Path(connection).name)
    if named is None:
        return None
    for said in _running(Path(connection).parent):
        server = Server(said["url"], named[1], said.get("token") or "")
        try:
            kernels = _ask(server, "api/kernels", patience_s=_PATIENCE_S)
        except (OSError, ValueError):
            continue  # it has ended, or wants a password
        if any(isinstance(each, dict) and each.get("id") == named[1] for each in kernels or ()):
            return server
    return None


def restart(server: Server) -> None:
    """Have the *server* restart that kernel, and nothing else; returns once it is back.

    Raises:
        NotRestarted: it was not.
    """
    try:
        _ask(server, f"api/kernels/{server.kernel}/restart", post=True, patience_s=_RESTART_S)
    except (OSError, ValueError) as error:
        raise NotRestarted(str(error)) from None


def _running(beside: Path) -> Iterator[dict[str, Any]]:
    """What the servers that run have written of themselves, in Jupyter's runtime folder and *beside* the kernel's."""
    for folder in dict.fromkeys([beside, _runtime_folder()]):
        for path in sorted(folder.glob(_FILES)):
            try:
                if path.stat().st_uid != os.getuid():
                    continue
                said = json.loads(path.read_bytes())
                os.kill(int(said["pid"]), 0)
                parts = urlsplit(said["url"])
            except (OSError, ValueError, KeyError, TypeError):
                continue  # left over
            if parts.scheme in ("http", "https") and _is_here(parts.hostname or ""):
                yield said


def _is_here(host: str) -> bool:
    """Whether the token may be sent to *host*: to this machine only."""
    return host in _HERE or host == os.uname().nodename


def _runtime_folder() -> Path:
    if given := os.environ.get("JUPYTER_RUNTIME_DIR"):
        return Path(given)
    if data := os.environ.get("JUPYTER_DATA_DIR"):
        return Path(data, "runtime")
    share = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(share, "jupyter", "runtime")


def _ask(server: Server, path: str, *, post: bool = False, patience_s: float) -> Any:
    request = urllib.request.Request(server.url.rstrip("/") + "/" + path, data=b"{}" if post else None)
    if server.token:
        request.add_header("Authorization", f"token {server.token}")
    request.add_header("Content-Type", "application/json")
    # No proxy: it is on this machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=patience_s) as answer:
        return json.loads(answer.read() or b"null")
