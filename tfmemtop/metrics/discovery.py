"""The file in which Prometheus finds the address of a session's page (file_sd)."""

import json
import socket
from collections.abc import Mapping
from pathlib import Path

from tfmemtop.metrics.whole import holds, replace

_EVERYWHERE = ("0.0.0.0", "::")


def entry(listener: socket.socket, host: str, labels: Mapping[str, str]) -> str:
    """Return the text of the file: the address of the page on *host*, and the *labels* of the target.

    Prometheus has these labels even while the page does not answer.
    """
    address, port = listener.getsockname()[:2]
    if address in _EVERYWHERE:
        address = host
    elif ":" in address:
        address = f"[{address}]"
    return json.dumps(
        [{"targets": [f"{address}:{port}"], "labels": {name: value for name, value in labels.items() if value}}]
    )


def publish(path: str, text: str, draft: str) -> None:
    """Write the file *path*, completely or not at all. The text is first written to *draft*.

    Raises:
        OSError: the file cannot be written.
    """
    replace(path, text.encode(), draft)


def withdraw(path: str, text: str) -> None:
    """Remove the file *path* if it still contains *text*, so that a file of another session stays.

    Raises:
        OSError: the file cannot be removed.
    """
    if holds(path, text.encode()):
        Path(path).unlink(missing_ok=True)
