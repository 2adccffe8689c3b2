"""Sends queries to a Prometheus server over HTTP, and decodes the answers. The calls block."""

import base64
import http.client
import math
import socket
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NoResult
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Annotated, Any, TypeVar
from urllib.parse import unquote, urlencode, urlsplit, urlunsplit

import msgspec

from tfmemtop.safe import safe

TIMEOUT_S = 10.0
"""Seconds for each step of the connection. Prometheus receives the same limit for its work on the query."""
_WHOLE = 3
"""The whole answer may take this many times :data:`TIMEOUT_S`."""
LARGEST = 96 * 2**20
"""The largest answer, in bytes: ten times what a thousand hosts with eight GPUs each need."""
_HIGHEST = 2.0**63 - 1024

_LONGEST_URL = 6000
"""Characters. Longer parameters are sent as a form with POST, because proxies refuse longer URLs."""
_LONGEST_ERROR = 300

_NOT_PROMETHEUS = "the server at that address is not Prometheus"
_SILENT = "it does not answer in time"
_BROKEN_OFF = "the connection broke off"

T = TypeVar("T")


class NoAnswer(Exception):
    """There is no answer. The message is a clause that says why; it can be shown."""


class Series(msgspec.Struct, frozen=True, gc=False):
    """One figure: its labels, and its time and value."""

    metric: dict[str, str]
    value: tuple[float, str] = (0.0, "NaN")

    @property
    def number(self) -> float | None:
        return number(self.value[1])


def number(text: str) -> float | None:
    """Return a value as a number; ``None`` if it is not finite, or too large for a size."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and abs(value) <= _HIGHEST else None


class _Data(msgspec.Struct):
    result: Annotated[list[Series], msgspec.Meta(max_length=1_000_000)]


class _Body(msgspec.Struct):
    data: _Data


_bodies = msgspec.json.Decoder(_Body)


@dataclass(frozen=True)
class Address:
    """The address of a server. ``authorization`` is the value of a header, and is never shown."""

    url: str
    authorization: str = field(default="", repr=False)

    @classmethod
    def of(cls, text: str, *, token: str = "", login: str = "") -> "Address":
        """Parse the address *text*, which may contain ``USER:PASSWORD@``.

        A bearer *token* or a *login* ``USER:PASSWORD`` takes precedence over that.

        Raises:
            ValueError: *text* is not the address of a web server, or the token or login has characters that no header
                may have. It may contain a password, so the error does not repeat it.
        """
        parts = urlsplit(text if "://" in text else f"http://{text}")
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ValueError
        parts.port  # noqa: B018 (raises if the port is not a number)
        host = parts.netloc.rpartition("@")[2]
        if parts.username is not None and not login:
            login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        header = f"Bearer {token}" if token else ""
        if login and not token:
            header = "Basic " + base64.b64encode(login.encode()).decode()
        if not header.isprintable() or not header.isascii():
            raise ValueError
        return cls(urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", "")), header)


@dataclass(frozen=True)
class ServerAnswer:
    """An answer of the server.

    ``server_time`` is the server's clock, in seconds since 1970. ``ahead_s`` is how many seconds that clock is ahead of
    ours. Both are ``None`` if the answer has no date.
    """

    body: bytes
    server_time: float | None
    ahead_s: float | None

    def series(self) -> list[Series]:
        """Return the series in the answer.

        Raises:
            NoAnswer: it is not an answer of Prometheus.
        """
        try:
            return _bodies.decode(self.body).data.result
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise NoAnswer(_NOT_PROMETHEUS) from error


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirects: one could send the password to another server."""

    def redirect_request(self, *_: Any) -> None:
        return None


class Client:
    """Sends queries to one server. Any thread may use it."""

    def __init__(self, address: Address, timeout_s: float = TIMEOUT_S) -> None:
        self.address = address
        self._timeout_s = timeout_s
        self._opener = urllib.request.build_opener(_NoRedirects)

    def query(self, text: str) -> ServerAnswer:
        """Return the current result of the query *text*.

        Raises:
            NoAnswer: the server did not answer the query.
        """
        url = f"{self.address.url}/api/v1/query"
        encoded = urlencode({"query": text, "timeout": f"{self._timeout_s:g}s"})
        long = len(encoded) > _LONGEST_URL
        request = urllib.request.Request(url if long else f"{url}?{encoded}", encoded.encode() if long else None)
        if self.address.authorization:
            request.add_unredirected_header("Authorization", self.address.authorization)
        try:
            # The socket's own limit begins again with each byte, so a slow server could keep this thread for hours.
            return in_thread(lambda: self._ask(request)).result(_WHOLE * self._timeout_s)
        except NoResult:
            raise NoAnswer(_SILENT) from None

    def _ask(self, request: urllib.request.Request) -> ServerAnswer:
        try:
            with self._opener.open(request, timeout=self._timeout_s) as answer:
                server_time, now = _time_of(answer.headers.get("Date", "")), time.time()
                body = answer.read(LARGEST + 1)
                if len(body) > LARGEST:
                    raise NoAnswer("its answer is too large; name a --job")
                if answer.length:
                    raise NoAnswer(_BROKEN_OFF)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise NoAnswer(_reason(error)) from None
        # The header is in whole seconds, so on average it is half a second old.
        return ServerAnswer(body, server_time, None if server_time is None else server_time + 0.5 - now)


def in_thread(work: Callable[[], T]) -> "Future[T]":
    """Do *work* in a thread. The program does not wait for that thread at its end, because a server may hang."""
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()  # from now on it cannot be cancelled

    def do() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=do, daemon=True, name="prometheus").start()
    return future


def _time_of(date: str) -> float | None:
    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, OverflowError, TypeError):
        return None


def _reason(error: BaseException) -> str:
    """Return why there is no answer, as a clause."""
    match error:
        case urllib.error.HTTPError():
            with error:
                return _refusal(error)
        case urllib.error.URLError(reason=OSError() as reason):
            return _reason(reason)
        case ssl.SSLError():
            return f"its certificate is not accepted ({_shown(error.reason)})"
        case socket.gaierror():
            return f"there is no host of that name ({_shown(error.strerror)})"
        case TimeoutError():
            return _SILENT
        case ConnectionResetError() | http.client.IncompleteRead():
            return _BROKEN_OFF
        case OSError(strerror=str()):
            return f"it cannot be reached ({_shown(error.strerror)})"
    return _NOT_PROMETHEUS


def _refusal(error: urllib.error.HTTPError) -> str:
    """Return what an HTTP error means: the server has answered, but not with the result of the query."""
    code, text = error.code, ""
    if code in (400, 422):
        try:
            text = error.read(4096).decode(errors="replace")
        except (OSError, http.client.HTTPException) as broken:
            return _reason(broken)
    if code in (401, 403):
        return f"it refuses the user, password or token (HTTP {code})"
    if 300 <= code < 400 and (place := _place(error.headers.get("Location", "") or "")):
        return f"it redirects to {_shown(place)}; give that address"
    if '"errorType"' in text:
        reason = text.partition('"error":')[2].strip(' "}\n')
        return f"it refuses the query: {_shown(reason)}"
    if code in (429, 502, 503, 504):
        return f"it has no room for the query now (HTTP {code})"
    return _NOT_PROMETHEUS


def _place(location: str) -> str:
    """Return the target of a redirect, without a password; empty if *location* is not valid."""
    try:
        where = urlsplit(location)
    except ValueError:
        return ""
    return where.netloc.rpartition("@")[2] + where.path


def _shown(detail: str | None) -> str:
    return safe((detail or "")[:_LONGEST_ERROR]) or "no reason given"
