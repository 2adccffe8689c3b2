"""The file by which Prometheus finds a session's page (file_sd)."""

import json
import socket
from collections.abc import Mapping

from tfmemtop.metrics.whole import holds, remove, replace

_EVERYWHERE = ("0.0.0.0", "::")


def entry(listener: socket.socket, host: str, labels: Mapping[str, str]) -> str:
    """What the file says: where on *host* the page is, and the *labels* that hold also while it does not answer."""
    address, port = listener.getsockname()[:2]
    if address in _EVERYWHERE:
        address = host
    elif ":" in address:
        address = f"[{address}]"
    return json.dumps(
        [{"targets": [f"{address}:{port}"], "labels": {name: value for name, value in labels.items() if value}}]
    )


def publish(path: str, text: str, draft: str) -> None:
    """Write the file, whole or not at all. It is first written to *draft*.

    Raises:
        OSError: it cannot be written.
    """
    replace(path, text.encode(), draft)


def withdraw(path: str, text: str) -> None:
    """Remove the file, unless another session has written it since."""
    if holds(path, text.encode()):
        remove(path)
