"""The part of HTTP that a page needs to answer GET and HEAD: reads requests within bounds, and sends answers.

Python's own HTTP server is not used, because it loads a megabyte of modules, and OpenSSL, which takes two more.
"""

import re
import socket
import time
from collections.abc import Mapping
from http import HTTPStatus
from typing import NamedTuple

PATIENCE_S = 10.0
"""Seconds within which a request must arrive, and within which the reader must accept the answer."""
LARGEST = 16 * 1024
"""The largest request, in bytes. Prometheus's requests have about 300."""

_LINE = re.compile("([!-~]+) ([!-~]+) HTTP/[0-9.]+")


class Request(NamedTuple):
    """A request. The names in ``fields`` are in lower case."""

    method: str
    target: str
    fields: Mapping[str, str]


class Refused(Exception):
    """A request that gets no other answer than ``status``."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status)
        self.status = status


def read_request(connection: socket.socket) -> Request:
    """Read a request, for at most :data:`PATIENCE_S` seconds and :data:`LARGEST` bytes.

    Raises:
        Refused: what has arrived is not a request, or is too large.
        OSError: the connection is closed, or :data:`PATIENCE_S` are over.
    """
    until, text = time.monotonic() + PATIENCE_S, ""
    while "\n\n" not in text:
        left, left_s = LARGEST - len(text), until - time.monotonic()
        if left <= 0:
            raise Refused(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        if left_s <= 0:
            raise TimeoutError
        connection.settimeout(left_s)
        arrived = connection.recv(left)
        if not arrived:
            raise ConnectionResetError
        text = (text + arrived.decode("latin-1")).replace("\r\n", "\n")
    first, *lines = text.partition("\n\n")[0].split("\n")
    line = _LINE.fullmatch(first)
    if line is None:
        raise Refused(HTTPStatus.BAD_REQUEST)
    fields = (field.partition(":") for field in lines)
    return Request(line[1], line[2], {name.lower(): value.strip() for name, _, value in fields})


def send_answer(connection: socket.socket, status: HTTPStatus, content_type: str, content: bytes | None) -> None:
    """Send an answer, for at most :data:`PATIENCE_S` seconds. The connection must be closed afterwards.

    An answer to HEAD has no *content*, and does not tell its length, for which the content would have to be made.

    Raises:
        OSError: the reader does not accept the answer.
    """
    fields = {"Content-Type": content_type} | ({} if content is None else {"Content-Length": str(len(content))})
    lines = [f"HTTP/1.0 {status.value} {status.phrase}", *(f"{name}: {value}" for name, value in fields.items())]
    connection.settimeout(PATIENCE_S)
    connection.sendall("".join(f"{line}\r\n" for line in [*lines, ""]).encode() + (content or b""))
