"""Sends queries to a Prometheus server over HTTP, and decodes the answers. The calls block.

The queries are in PromQL. None depends on the number of hosts. Each series of an answer has a label ``means``, which
says what it is; the names are those of :class:`tfmemtop.cluster.answers.Rows`.
"""

import base64
import http.client
import math
import socket
import ssl
import threading
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


class Sample(msgspec.Struct, frozen=True, gc=False):
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
    result: Annotated[list[Sample], msgspec.Meta(max_length=1_000_000)]


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

    ``server_time`` is the server's clock, in seconds since 1970; ``None`` if the answer has no date.
    """

    body: bytes
    server_time: float | None

    def series(self) -> list[Sample]:
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


class PrometheusClient:
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
                server_time = _time_of(answer.headers.get("Date", ""))
                body = answer.read(LARGEST + 1)
                if len(body) > LARGEST:
                    raise NoAnswer("its answer is too large; name a --job")
                if answer.length:
                    raise NoAnswer(_BROKEN_OFF)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise NoAnswer(_reason(error)) from None
        return ServerAnswer(body, server_time)


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
    if '"errorType"' in text:
        reason = text.partition('"error":')[2].strip(' "}\n')
        return f"it refuses the query: {_shown(reason)}"
    return f"it answers with HTTP {code}, not with figures"


def _shown(detail: str | None) -> str:
    return safe((detail or "")[:_LONGEST_ERROR]) or "no reason given"


_CARD = "host,exported_host,uuid"
_RANK = "instance,run,rank,exported_rank"

SLOW_S = 60.0
"""Seconds between two queries for what changes slowly."""
STALE_S = 120
"""Figures are old from this age on, in seconds. A target that answers has newer ones: most have an interval of 60 s
or less."""
PACE_S = 600
"""The pace is the mean over this many seconds. A validation, which each rank may begin at another time, is a small part
of that."""
STARTING_S = 300
"""For this many seconds a rank may import and build before its missing TensorFlow memory is shown as a problem."""


def quoted(text: str) -> str:
    """Return *text* as a string literal of PromQL."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{plain}"'


class Queries:
    """The queries for all jobs, or for one *job*."""

    def __init__(self, job: str | None = None) -> None:
        self._job = job

    def _of(self, name: str, form: str = "{}") -> str:
        """Return *form*, in which the metric *name* of the job stands for ``{}``."""
        if self._job is None:
            return form.format(f"tfmemtop_{name}")
        job = quoted(self._job)
        places = f"exported_job={job}", f'job={job},exported_job=""'
        return "(" + " or ".join(form.format(f"tfmemtop_{name}{{{place}}}") for place in places) + ")"

    def _card(self, name: str, labels: str = "") -> str:
        """Return the metric *name* once for each card: every rank on the host may report the same card."""
        return f"max by ({_CARD}{labels}) ({self._of(name)})"

    def fast(self) -> str:
        """Return the query for what changes at any time."""
        in_use = f"({self._of('in_use_high_bytes')} or {self._of('in_use_bytes')})"
        ended = f"({self._of('running')} == 0)"
        unread = f"{self._of('run_info')} unless on ({_RANK}) {in_use} unless on ({_RANK}) {ended}"
        return _joined(
            in_use=in_use,
            used=self._card("device_memory_used_bytes"),
            busy=self._card("device_utilization_ratio"),
            finding=self._of("finding"),
            ended=ended,
            unread=unread,
            down="up == 0",
        )

    def slow(self) -> str:
        """Return the query for what changes slowly."""
        # A rank that counts no steps has a count of 0 at all times. This leaves it out.
        stepping = f"{self._of('steps_total', f'{{}} offset {PACE_S}s')} > 0"
        ages = " or ".join(
            f"max by (instance) (time() - timestamp({self._of(name)})) > {STALE_S}"
            for name in ("in_use_bytes", "device_memory_used_bytes")
        )
        return _joined(
            limit=self._of("limit_bytes"),
            total=self._card("device_memory_total_bytes"),
            info=self._card("device_info", ",index,name"),
            run=self._of("run_info"),
            starting=f"({self._of('run_start_time_seconds')} > time() - {STARTING_S})",
            old=ages,
            pace=f"{self._of('steps_total', f'rate({{}}[{PACE_S}s])')} and {stepping}",
        )


def _joined(**parts: str) -> str:
    """Return the query for all *parts*, with the name of the part in the label ``means`` of each of its series."""
    return " or ".join(f'label_replace({part}, "means", "{means}", "", "")' for means, part in parts.items())
