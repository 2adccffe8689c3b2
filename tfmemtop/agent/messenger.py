"""Sends events to the engine, and keeps every failure of the agent away from the script."""

import json
import os
import sys
from typing import Any, Callable, Optional

from .link import Link

_TOLD = 100  # different failures that are reported: what fails once may fail a million times
_TEXT = 16_384  # characters of a text, and of all arguments together, that are sent at most


class Messenger:
    """The one sender of events in a process. All that the agent does in the script's threads runs in :meth:`guarded`.

    ``tensorflow`` is TensorFlow's version, ``None`` until it can be read. ``frameworks`` has the versions of the other
    frameworks that the script has imported.
    """

    def __init__(
        self, path: str, from_signal_handler: Callable[[Exception], bool], in_child: Callable[[], object]
    ) -> None:
        """*path* is the engine's socket.

        *from_signal_handler* returns whether a signal handler of the script raised an exception. *in_child* is called
        first of all in a forked child. It must call :meth:`start_over`.
        """
        self.tensorflow: Optional[str] = None
        self.frameworks: dict[str, str] = {}
        self._path = path
        self._from_signal_handler = from_signal_handler
        self._in_child = in_child
        self._begin()

    def _begin(self) -> None:
        self.pid = os.getpid()
        self.link = Link(self._path)
        self.greeted = False
        self._told: set[tuple[str, str]] = set()

    def start_over(self) -> None:
        """Become the messenger of a forked child.

        The parent's connection is closed here. Left open, it would hide from the engine that the parent has ended.
        """
        link = self.link
        self._begin()
        link.close()

    def guarded(self, doing: str, function: Callable[..., Any], *args: Any) -> Any:
        """Return ``function(*args)``, or ``None`` if it fails; the failure is reported.

        *doing* says in a word what is done; after a colon it may name the object concerned.
        An exception that a signal handler of the script raised meanwhile is the script's, and passes.
        """
        try:
            if os.getpid() != self.pid:
                self._in_child()
            return function(*args)
        except Exception as error:
            if self._from_signal_handler(error):
                raise
            self.report(doing, error)
            return None

    def report(self, doing: str, error: Exception) -> None:
        """Report to the engine what failed, and where in the code: each such text once."""
        try:
            self._report(doing, error)
        except Exception as again:
            if self._from_signal_handler(again):
                raise
            # Sending fails, too. If an audit hook of the script forbids the connection, there is no other attempt.
            if not self.link.opened:
                self.link.close()

    def _report(self, doing: str, error: Exception) -> None:
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        where = ""
        if trace is not None:
            file = trace.tb_frame.f_code.co_filename.rpartition("/")[2]  # <tfmemtop core.py>, if it is the agent's
            where = f" ({file.rpartition(' ')[2].rstrip('>')}:{trace.tb_lineno})"
        text = f"{type(error).__name__}: {error}{where}"
        if (doing, text) not in self._told and len(self._told) < _TOLD:
            self._told.add((doing, text))
            self.send("hook_error", doing=doing, text=text)

    def send(self, kind: str, /, **fields: Any) -> None:
        """Send an event. If the socket is full, the event waits, not the caller."""
        if not self.greeted:
            self.hello()
        self.link.send(encode(kind, fields))

    def send_encoded(self, kind: str, **fields: str) -> None:
        """Send an event whose fields are JSON already, so that a large one is made piece by piece."""
        if not self.greeted:
            self.hello()
        parts = [f'"type": "{kind}"', *(f'"{name}": {value}' for name, value in fields.items())]
        self.link.send(f"{{{', '.join(parts)}}}".encode())

    def offer(self, kind: str, **fields: Any) -> None:
        """Send an event now, or drop and count it: a newer one will follow."""
        self.link.offer(encode(kind, fields))

    def hello(self) -> None:
        """Send the event that describes this process, with TensorFlow's version once that is known.

        Its folder is known from the beginning of its import on: the engine builds the probe meanwhile.
        """
        self.greeted = True
        fields = {
            "ppid": os.getppid(),
            "argv": _arguments(),
            "python": "{}.{}.{}".format(*sys.version_info[:3]),
            "executable": sys.executable or "",
            "tensorflow": self.tensorflow,
            "tensorflow_path": tensorflow_folder() or None,
            "frameworks": [{"name": name, "version": version} for name, version in self.frameworks.items()],
        }
        self.link.send(encode("hook", fields))

    def goodbye(self) -> None:
        """Send the event that this process ends, and close the connection."""
        self.send("hook_end", reason="exit", dropped=self.link.dropped)
        self.link.close()


def encode(kind: str, fields: "dict[str, Any]") -> bytes:
    """Return an event as one packet. Texts are cut to what a packet can hold, and made fit for UTF-8."""
    message = {"type": kind}
    message.update((name, _clean(value)) for name, value in fields.items())
    return json.dumps(message).encode()


def encoded(value: Any) -> str:
    """Return a value of an event as JSON."""
    return json.dumps(_clean(value))


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return value[:_TEXT].encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_clean(key): _clean(item) for key, item in value.items()}
    return [_clean(item) for item in value] if isinstance(value, list) else value


def tensorflow_folder() -> str:
    """Return the folder of the package ``tensorflow``; an empty text before its import."""
    module: Any = sys.modules.get("tensorflow")
    return (getattr(module, "__file__", None) or "").rpartition("/")[0]


def _arguments() -> "list[str]":
    arguments: list[str] = []
    room = _TEXT
    for argument in getattr(sys, "orig_argv", None) or getattr(sys, "argv", []):
        room -= len(argument)
        if room < 0:
            return [*arguments, "…"]
        arguments.append(argument)
    return arguments
