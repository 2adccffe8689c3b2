"""The page that Prometheus reads."""

import socket
from collections.abc import Callable
from http import HTTPStatus
from threading import Lock
from urllib.parse import parse_qs, urlsplit

from tfmemtop.metrics.connections import Connections
from tfmemtop.metrics.http import Refused, Request, read_request, send_answer
from tfmemtop.metrics.text import CONTENT_TYPE, text_of
from tfmemtop.metrics.watched import Watched

PATH = "/metrics"


class Page(Connections):
    """The server that answers on *listener* with the metrics of *watched*, and with nothing else.

    If an answer cannot be made, *failed* is called with the exception, in the thread of the request.
    """

    def __init__(self, listener: socket.socket, watched: Watched, failed: Callable[[Exception], None]) -> None:
        super().__init__(listener, self._answer)
        self._watched = watched
        self._failed = failed
        self._turn = Lock()

    def _answer(self, connection: socket.socket, address: str) -> None:
        head = False
        try:
            request = read_request(connection)
            head = request.method == "HEAD"
            _check(request)
            if head:
                send_answer(connection, HTTPStatus.OK, CONTENT_TYPE, None)
            else:
                self._send_metrics(connection, address, request)
        except Refused as refused:
            content = None if head else refused.status.phrase.encode()
            send_answer(connection, refused.status, "text/plain", content)

    def _send_metrics(self, connection: socket.socket, address: str, request: Request) -> None:
        try:
            # Two readers on one machine with the same User-Agent can use ?scraper=a and ?scraper=b as their names.
            named = parse_qs(urlsplit(request.target).query).get("scraper", [""])[0]
            reader = address, request.fields.get("user-agent", ""), named
            with self._turn:  # one thread at a time makes a text: the others of the process need Python's lock too
                found, marks = self._watched.look(reader)
                text = text_of(found)
        except Exception as error:
            self._failed(error)
            raise Refused(HTTPStatus.INTERNAL_SERVER_ERROR) from error
        try:
            # Every reader accepts plain text. To compress a few kB takes longer than to send them.
            send_answer(connection, HTTPStatus.OK, CONTENT_TYPE, text)
        except OSError:
            self._watched.give_back(reader, marks)
            raise


def _check(request: Request) -> None:
    """Check that *request* asks for the metrics, or with HEAD whether they are there.

    Raises:
        Refused: it asks for something else.
    """
    if request.method not in ("GET", "HEAD"):
        raise Refused(HTTPStatus.NOT_IMPLEMENTED)
    if request.target.partition("?")[0] != PATH:
        raise Refused(HTTPStatus.NOT_FOUND)
