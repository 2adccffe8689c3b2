"""The file by which Prometheus finds a session's page (file_sd)."""

import json
import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

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


def publish(path: str, text: str) -> None:
    """Write the file, whole or not at all.

    Raises:
        OSError: it cannot be written.
    """
    draft = f"{path}.{os.getpid()}"  # a name that no pattern such as *.json takes in
    try:
        Path(draft).write_text(text, "utf-8")
        os.replace(draft, path)  # noqa: PTH105
    except BaseException:
        with suppress(OSError):
            os.unlink(draft)  # noqa: PTH108
        raise


def withdraw(path: str, text: str) -> None:
    """Remove the file, unless another session has written it since."""
    with suppress(OSError, UnicodeDecodeError):
        file = Path(path)
        if file.read_text("utf-8") == text:
            file.unlink()
