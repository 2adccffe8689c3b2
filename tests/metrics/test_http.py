"""Requests: what is read of them, and what is refused."""

import socket
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tfmemtop.metrics.http import LARGEST, Refused, Request, read_request


def read(*pieces: bytes) -> Request:
    """Return the request that a connection with these bytes is. Nothing comes after them."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        for piece in pieces:
            theirs.sendall(piece)
        theirs.shutdown(socket.SHUT_WR)
        return read_request(ours)


@pytest.mark.parametrize("end", [b"\r\n", b"\n"])
def test_a_request_is_read_whichever_way_its_lines_end(end: bytes) -> None:
    lines = [b"GET /metrics?scraper=a HTTP/1.1", b"Host: here:9400", b"USER-Agent:  Prometheus/3 (a: b) ", b"", b"rest"]
    found = read(end.join(lines))
    assert (found.method, found.target) == ("GET", "/metrics?scraper=a")
    assert found.fields == {"host": "here:9400", "user-agent": "Prometheus/3 (a: b)"}


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (b"\n\n", 400),
        (b"GET /metrics\r\n\r\n", 400),
        (b"GET  HTTP/1.1\r\n\r\n", 400),
        (b"GET /a b HTTP/1.1\r\n\r\n", 400),
        (b"\x16\x03\x01 TLS\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nX: " + LARGEST * b"x", 431),
    ],
)
def test_what_is_no_request_is_refused(text: bytes, status: int) -> None:
    with pytest.raises(Refused) as refused:
        read(text)
    assert refused.value.status == status


@pytest.mark.parametrize("text", [b"", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\n\r"])
def test_half_a_request_is_none(text: bytes) -> None:
    with pytest.raises(ConnectionError):
        read(text)


@given(st.lists(st.binary(), max_size=8))
@example([b"GET / HTTP/1.1\r", b"\n\r", b"\n"])
def test_nothing_else_happens_whatever_arrives(pieces: list[bytes]) -> None:
    with suppress(Refused, ConnectionError):
        read(*pieces)
