"""Answers of a server that contain no figures: each leads to one clear line, which contains no secret."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tfmemtop.cluster import client as client_module
from tfmemtop.cluster.client import Address, NoAnswer, PrometheusClient, ServerAnswer
from tfmemtop.cluster.watch import no_answer

Reply = Callable[[BaseHTTPRequestHandler], None]
SECRET = "open-sesame"


@contextmanager
def server(reply: Reply) -> Iterator[str]:
    """The URL of a server that answers each request with *reply*."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            reply(self)

        def log_message(self, *_: object) -> None:
            """Write nothing: no test reads this log."""

    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.daemon_threads = True
    thread = threading.Thread(target=made.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{made.server_address[1]}"
    finally:
        made.shutdown()
        made.server_close()


def answering(code: int, body: bytes = b"", **headers: str) -> Reply:
    def reply(request: BaseHTTPRequestHandler) -> None:
        request.send_response(code)
        for name, value in headers.items():
            request.send_header(name, value)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    return reply


def breaking_off(request: BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.send_header("Content-Length", "1000")
    request.end_headers()
    request.wfile.write(b'{"status":')


REFUSED = b'{"status":"error","errorType":"bad_data","error":"invalid parameter"}'
DEEP = b"[" * 10_000 + b"]" * 10_000
DEEP_LABEL = b'{"data":{"resultType":"vector","result":[{"metric":{"x":' + DEEP + b'},"value":[1,"1"]}]}}'
ELSE = "the server at that address is not Prometheus"


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (answering(401), "it refuses the user, password or token (HTTP 401)"),
        (answering(404, b"<html>"), "it answers with HTTP 404"),
        (answering(200, b'{"status": "ok"}'), ELSE),
        (answering(200, DEEP_LABEL), ELSE),
        (answering(200, b"\x1f\x8b", **{"Content-Encoding": "gzip"}), ELSE),
        (answering(302, Location="http://elsewhere/x"), "it answers with HTTP 302"),
        (answering(422, REFUSED), "it refuses the query: invalid parameter"),
        (breaking_off, "the connection broke off"),
    ],
)
def test_what_is_no_answer_is_one_line(reply: Reply, said: str) -> None:
    with server(reply) as url, pytest.raises(NoAnswer) as caught:
        PrometheusClient(Address.of(url, token=SECRET)).query("up").series()
    line = no_answer(url, caught.value)
    assert said in line
    assert SECRET not in line


def test_an_address_at_which_nobody_is(nobody: int) -> None:
    with pytest.raises(NoAnswer) as caught:
        PrometheusClient(Address.of(f"127.0.0.1:{nobody}")).query("up")
    assert no_answer("x", caught.value).endswith("it cannot be reached (Connection refused)")
    with pytest.raises(NoAnswer) as caught:
        PrometheusClient(Address.of("http://no.such.host.invalid")).query("up")
    assert "no host of that name" in str(caught.value)


def test_an_answer_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "LARGEST", 2**20)
    with server(answering(200, b" " * 2**22)) as url, pytest.raises(NoAnswer) as caught:
        PrometheusClient(Address.of(url)).query("up")
    assert "too large" in str(caught.value)


def drop_by_drop(first: bytes, drop: bytes) -> Reply:
    def reply(request: BaseHTTPRequestHandler) -> None:
        request.wfile.write(first)
        with suppress(OSError):
            while True:
                request.wfile.write(drop)
                time.sleep(0.02)

    return reply


@pytest.mark.parametrize(
    "reply",
    [
        lambda _: time.sleep(1),
        drop_by_drop(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", b" "),
        drop_by_drop(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    ],
    ids=["nothing", "body", "status"],
)
def test_an_answer_that_never_ends_is_not_waited_for(reply: Reply) -> None:
    with server(reply) as url, pytest.raises(NoAnswer) as caught:
        PrometheusClient(Address.of(url), timeout_s=0.2).query("up")
    assert "in time" in str(caught.value)


def test_a_redirect_does_not_carry_the_password_elsewhere() -> None:
    asked: list[str | None] = []

    def note(request: BaseHTTPRequestHandler) -> None:
        asked.append(request.headers.get("Authorization"))
        answering(200, b"{}")(request)

    with server(note) as other, server(answering(307, Location=other)) as url, pytest.raises(NoAnswer):
        PrometheusClient(Address.of(url, login=f"ada:{SECRET}")).query("up")
    assert asked == []


def test_a_password_in_the_address_is_sent_and_never_shown() -> None:
    asked: list[str | None] = []

    def note(request: BaseHTTPRequestHandler) -> None:
        asked.append(request.headers.get("Authorization"))
        answering(200, b'{"status":"success","data":{"resultType":"vector","result":[]}}')(request)

    with server(note) as url:
        address = Address.of(url.replace("://", "://ada:p%40ss@") + "/prometheus/")
        assert PrometheusClient(address).query("up").series() == []
    assert asked == ["Basic YWRhOnBAc3M="]
    assert address.url == f"{url}/prometheus"
    assert "YWRh" not in repr(address)


@pytest.mark.parametrize("text", ["", "ftp://x", "http://", "http://x:port", "http://x/?a=b"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ValueError):
        Address.of(text)


@pytest.mark.parametrize(
    ("value", "number"),
    [("12", 12.0), ("NaN", None), ("1e300", None), ("x", None)],
)
def test_values_that_cannot_be_are_not_known(value: str, number: float | None) -> None:
    body = f'{{"status":"success","data":{{"resultType":"vector","result":[{{"metric":{{}},"value":[1,"{value}"]}}]}}}}'
    (one,) = ServerAnswer(body.encode(), None).series()
    assert one.number == number
