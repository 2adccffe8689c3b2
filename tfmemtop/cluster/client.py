"""Sends queries to a Prometheus server over HTTP, and nothing else. The calls block, so call them in a thread."""

import base64
import http.client
import socket
import ssl
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from enum import Enum
from typing import Any, NoReturn
from urllib.parse import unquote, urlencode, urlsplit, urlunsplit

from tfmemtop.cluster.bounded import Bounded, BoundedHttp, BoundedHttps, Deadline

TIMEOUT_S = 10.0
"""Seconds for each step of the connection. Prometheus receives the same limit for its work on the query."""
_WHOLE = 3
"""The whole answer may take this many times :data:`TIMEOUT_S`."""

LARGEST = 96 * 2**20
"""The largest answer, in bytes: ten times what a thousand hosts with eight GPUs each need."""

_LONGEST_URL = 6000
"""Characters. Longer parameters are sent as a form with POST, because proxies refuse longer URLs.

Prometheus accepts both.
"""
_PIECE = 2**20
_LONGEST_ERROR = 300


class Trouble(Enum):
    """The reason why there is no answer."""

    NO_SUCH_HOST = "no_such_host"
    UNREACHABLE = "unreachable"
    SILENT = "silent"  # connected, but no answer came in time
    CERTIFICATE = "certificate"
    WHO_ARE_YOU = "who_are_you"  # the user, token or password is missing or wrong
    ELSEWHERE = "elsewhere"  # the server redirects to another address
    NOT_PROMETHEUS = "not_prometheus"
    QUERY_REFUSED = "query_refused"
    OVERLOADED = "overloaded"
    TOO_LARGE = "too_large"
    BROKEN_OFF = "broken_off"


class NoAnswer(Exception):
    """There is no answer. ``detail`` is the error text of the system or the server; it may contain any characters."""

    def __init__(self, trouble: Trouble, detail: str = "") -> None:
        super().__init__(trouble.value)
        self.trouble, self.detail = trouble, detail[:_LONGEST_ERROR]


class NotAnAddress(ValueError):
    """The text is not an address. It may contain a password, so the error does not repeat it."""


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
            NotAnAddress: *text* is not the address of a web server, or the token or login has characters that no header
                may have.
            ValueError: the port is not valid, or the address cannot be parsed.
        """
        parts = urlsplit(text if "://" in text else f"http://{text}")
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise NotAnAddress
        parts.port  # noqa: B018 (raises if the port is not a number)
        host = parts.netloc.rpartition("@")[2]
        if parts.username is not None and not login:
            login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        header = f"Bearer {token}" if token else ""
        if login and not token:
            header = "Basic " + base64.b64encode(login.encode()).decode()
        if not header.isprintable() or not header.isascii():
            raise NotAnAddress
        return cls(urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", "")), header)


@dataclass(frozen=True)
class ServerAnswer:
    """An answer of the server; ``took_s`` is how many seconds it took.

    ``server_time`` is the server's clock, in seconds since 1970. ``ahead_s`` is how many seconds that clock is ahead of
    ours. Both are ``None`` if the answer has no date.
    """

    body: bytes
    took_s: float
    server_time: float | None
    ahead_s: float | None


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirects: one could send the password to another server."""

    def redirect_request(self, *_: Any) -> None:
        return None


class Client:
    """Sends queries to one server. Any thread may use it."""

    def __init__(self, address: Address, timeout_s: float = TIMEOUT_S) -> None:
        self.address = address
        self._timeout_s = timeout_s
        self._opener = urllib.request.build_opener(_NoRedirects, BoundedHttp, BoundedHttps)

    def query(self, text: str) -> ServerAnswer:
        """Return the current result of the query *text*.

        Raises:
            NoAnswer: the server did not answer the query; the exception has the reason.
        """
        return self._get("query", {"query": text})

    def query_range(self, text: str, start: float, end: float, step_s: float) -> ServerAnswer:
        """Return the results of the query *text* from *start* to *end*, one every *step_s* seconds.

        *start* and *end* are seconds since 1970.

        Raises:
            NoAnswer: the server did not answer the query; the exception has the reason.
        """
        return self._get(
            "query_range", {"query": text, "start": f"{start:.3f}", "end": f"{end:.3f}", "step": f"{step_s:.3f}"}
        )

    def _get(self, what: str, parameters: dict[str, str]) -> ServerAnswer:
        parameters = {**parameters, "timeout": f"{self._timeout_s:g}s"}
        url, encoded = f"{self.address.url}/api/v1/{what}", urlencode(parameters)
        begun = time.monotonic()
        deadline = Deadline(_WHOLE * self._timeout_s)
        if len(encoded) > _LONGEST_URL:
            request = Bounded(url, encoded.encode(), deadline)
        else:
            request = Bounded(f"{url}?{encoded}", None, deadline)
        if self.address.authorization:
            request.add_unredirected_header("Authorization", self.address.authorization)
        try:
            body, date, asked_at = self._ask(request)
        except NoAnswer:
            if not deadline.over:
                raise
        finally:
            deadline.cancel()
        if deadline.over:  # the connection was shut, so the body or the error means nothing
            raise NoAnswer(Trouble.SILENT)
        server_time = _time_of(date)
        # The header is in whole seconds, so on average it is half a second old.
        ahead_s = None if server_time is None else server_time + 0.5 - asked_at
        return ServerAnswer(body, time.monotonic() - begun, server_time, ahead_s)

    def _ask(self, request: Bounded) -> tuple[bytes, str, float]:
        """Return the body of the answer, the server's date, and the time by our clock when the date arrived."""
        try:
            with self._opener.open(request, timeout=self._timeout_s) as answer:
                date, asked_at = answer.headers.get("Date", ""), time.time()
                return _read(answer), date, asked_at
        except urllib.error.HTTPError as error:
            _refused(error)
        except urllib.error.URLError as error:
            _failed(error.reason if isinstance(error.reason, OSError) else error)
        except http.client.IncompleteRead as error:
            raise NoAnswer(Trouble.BROKEN_OFF) from error
        except (http.client.HTTPException, ValueError, AttributeError) as error:
            # The library raises AttributeError if a connection is shut while it reads from it.
            raise NoAnswer(Trouble.NOT_PROMETHEUS) from error
        except OSError as error:
            _failed(error)


def _read(answer: Any) -> bytes:
    pieces, size = [], 0
    while piece := answer.read(_PIECE):
        pieces.append(piece)
        size += len(piece)
        if size > LARGEST:
            raise NoAnswer(Trouble.TOO_LARGE)
    if answer.length:
        raise NoAnswer(Trouble.BROKEN_OFF)
    return b"".join(pieces)


def _time_of(date: str) -> float | None:
    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, OverflowError):
        return None


def _refused(error: urllib.error.HTTPError) -> NoReturn:
    """Raise :class:`NoAnswer` for an HTTP error: the server has answered, but not with the result of the query."""
    with error:
        try:
            text = error.read(4096).decode(errors="replace")
        except (OSError, http.client.HTTPException):
            text = ""
    code = error.code
    if code in (401, 403):
        raise NoAnswer(Trouble.WHO_ARE_YOU, str(code)) from None
    if 300 <= code < 400 and (place := _place(error.headers.get("Location", "") or "")):
        raise NoAnswer(Trouble.ELSEWHERE, place) from None
    if code in (400, 422) and '"errorType"' in text:
        raise NoAnswer(Trouble.QUERY_REFUSED, text.partition('"error":')[2].strip(' "}\n')) from None
    if code in (429, 502, 503, 504):
        raise NoAnswer(Trouble.OVERLOADED, str(code)) from None
    raise NoAnswer(Trouble.NOT_PROMETHEUS, str(code)) from None


def _place(location: str) -> str:
    """Return the target of a redirect, without a password; empty if *location* is not valid."""
    try:
        where = urlsplit(location)
    except ValueError:
        return ""
    return where.netloc.rpartition("@")[2] + where.path


def _failed(error: BaseException) -> NoReturn:
    """Raise :class:`NoAnswer` for an *error* with which no HTTP answer came at all."""
    if isinstance(error, ssl.SSLError):
        raise NoAnswer(Trouble.CERTIFICATE, error.reason or "") from None
    if isinstance(error, socket.gaierror):
        raise NoAnswer(Trouble.NO_SUCH_HOST, error.strerror or "") from None
    if isinstance(error, TimeoutError):
        raise NoAnswer(Trouble.SILENT) from None
    if isinstance(error, ConnectionResetError):
        raise NoAnswer(Trouble.BROKEN_OFF) from None
    if isinstance(error, OSError):
        raise NoAnswer(Trouble.UNREACHABLE, error.strerror or "") from None
    raise NoAnswer(Trouble.NOT_PROMETHEUS) from None
