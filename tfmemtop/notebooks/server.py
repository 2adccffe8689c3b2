"""Finds Jupyter's server as its own tools do, and restarts one kernel by the server's API.

A running server writes its address and its token to ``jpserver-PID.json`` in Jupyter's runtime folder, which only its
user can read. Only two parts of its API are used: the list of kernels, and ``restart`` of one kernel. Nothing is called
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

from tfmemtop.home import jupyter_folder

_FILES = "*server-*.json"  # matches the files of the classic notebook, too
_KERNEL = re.compile(r"kernel-([0-9A-Za-z-]+)\.json")
_PATIENCE_S = 10.0
_RESTART_S = 120.0
_HERE = ("localhost", "127.0.0.1", "::1", "0.0.0.0", "")


class NotRestarted(Exception):
    """The server did not restart the kernel; ``detail`` is the error message of the server or the system."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class Server(NamedTuple):
    """A server at ``url`` that runs the kernel with the id ``kernel``. The ``token`` is a secret of the user's."""

    url: str
    kernel: str
    token: str


def find(connection: str) -> Server | None:
    """Return the server of this user and machine whose kernel has the *connection* file; ``None`` if there is none.

    It sends a request to each server. If a server does not answer, this takes up to ten seconds.
    """
    named = _KERNEL.fullmatch(Path(connection).name)
    if named is None:
        return None
    for said in _running(Path(connection).parent):
        server = Server(said["url"], named[1], said.get("token") or "")
        try:
            kernels = _ask(server, "api/kernels", patience_s=_PATIENCE_S)
        except (OSError, ValueError):
            continue  # the server has ended, or requires a password
        if any(isinstance(each, dict) and each.get("id") == named[1] for each in kernels or ()):
            return server
    return None


def restart(server: Server) -> None:
    """Let the *server* restart its kernel ``server.kernel``; return when the kernel runs again.

    Raises:
        NotRestarted: the server did not restart the kernel, or did not answer.
    """
    try:
        _ask(server, f"api/kernels/{server.kernel}/restart", post=True, patience_s=_RESTART_S)
    except (OSError, ValueError) as error:
        raise NotRestarted(str(error)) from None


def _running(beside: Path) -> Iterator[dict[str, Any]]:
    """Yield what each running server has written about itself in the folder *beside*, and in Jupyter's runtime folder.

    *beside* is the folder of the kernel's connection file.
    """
    for folder in dict.fromkeys([beside, _runtime_folder()]):
        for path in sorted(folder.glob(_FILES)):
            try:
                if path.stat().st_uid != os.getuid():
                    continue
                said = json.loads(path.read_bytes())
                os.kill(int(said["pid"]), 0)
                parts = urlsplit(said["url"])
            except (OSError, ValueError, KeyError, TypeError):
                continue  # left over by a server that has ended, or damaged
            if parts.scheme in ("http", "https") and _is_here(parts.hostname or ""):
                yield said


def _is_here(host: str) -> bool:
    """Return whether *host* is this machine. The token may be sent to this machine only."""
    return host in _HERE or host == os.uname().nodename


def _runtime_folder() -> Path:
    return Path(os.environ.get("JUPYTER_RUNTIME_DIR") or jupyter_folder() / "runtime")


def _ask(server: Server, path: str, *, post: bool = False, patience_s: float) -> Any:
    request = urllib.request.Request(server.url.rstrip("/") + "/" + path, data=b"{}" if post else None)
    if server.token:
        request.add_header("Authorization", f"token {server.token}")
    request.add_header("Content-Type", "application/json")
    # No proxy: the server is on this machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=patience_s) as answer:
        return json.loads(answer.read() or b"null")
