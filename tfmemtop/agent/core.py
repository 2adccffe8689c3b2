"""What one process knows: its link to the monitor, its settings, its sampler."""

import atexit
import json
import os
import sys
from typing import TYPE_CHECKING, Any, Callable, Optional

from .census import Census
from .collector import Collector
from .devices import uses_cpu_pool
from .functions import Functions
from .link import Link
from .making import Making
from .sampler import Sampler
from .settle import Settings, parse_settings

if TYPE_CHECKING:
    from types import ModuleType

_TOLD = 100  # different texts of what failed that are told: what fails once may fail a million times
_TEXT = 16_384  # characters of a text, and of all arguments together, that are sent at most

_FAREWELLS = 3  # attempts to say goodbye, which the script's signals interrupt


class Agent:
    """One to a process. Everything it does for the script's threads goes through :meth:`quietly`."""

    def __init__(self, path: str, from_signal_handler: Callable[[Exception], bool]) -> None:
        """*path* is the monitor's socket."""
        self.path = path
        self._from_signal_handler = from_signal_handler
        self.interval = 0.1
        self.settings = Settings()
        self.context: Optional[ModuleType] = None  # tensorflow.python.eager.context, once it is there
        self.functions = Functions()
        self.census = Census()
        self.making = Making(self)
        self.collector = Collector()
        self.sessions = False  # whether there has been a TF1-style session
        self._start_over()
        atexit.register(self._exit)
        os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        self.quietly("starting over in a fork", bool)

    def _start_over(self) -> None:
        self.pid = os.getpid()
        self.link = Link(self.path)
        self.greeted = False
        self.sampler: Optional[Sampler] = None
        self.inherited = False
        self._told: set[str] = set()

    def quietly(self, doing: str, function: Callable[..., Any], *args: Any) -> Any:
        """``function(*args)``; what fails in it goes to the monitor, and ``None`` to the caller.

        An exception that a signal handler of the script raised meanwhile is the script's, and passes.
        """
        try:
            if os.getpid() != self.pid:
                self._let_go()
            return function(*args)
        except Exception as error:
            if self._from_signal_handler(error):
                raise
            self.report(doing, error)
            return None

    def report(self, doing: str, error: Exception) -> None:
        """Tell the monitor what failed, and where: each such text once."""
        try:
            self._report(doing, error)
        except Exception as again:
            if self._from_signal_handler(again):
                raise
            # Sending fails too. Where an audit hook of the script forbids the line, it need not say so again.
            if not self.link.opened:
                self.link.close()

    def _report(self, doing: str, error: Exception) -> None:
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        where = ""
        if trace is not None:
            file = trace.tb_frame.f_code.co_filename.rpartition("/")[2]  # of ours <tfmemtop core.py>
            where = f" ({file.rpartition(' ')[2].rstrip('>')}:{trace.tb_lineno})"
        text = f"{doing}: {type(error).__name__}: {error}{where}"
        if text not in self._told and len(self._told) < _TOLD:
            self._told.add(text)
            self.send("hook_error", text=text)

    def send(self, kind: str, **fields: Any) -> None:
        """Send an event; it waits if the socket is full."""
        if not self.greeted:
            self.hello()
        self.link.send(encode(kind, fields))

    def offer(self, kind: str, **fields: Any) -> None:
        """Send an event now, or drop and count it: a newer one will follow."""
        self.link.offer(encode(kind, fields))

    def hello(self) -> None:
        """Say who this process is, with TensorFlow's version once that is known."""
        self.greeted = True
        version, folder = (None, None) if self.context is None else self.tensorflow()
        fields = {
            "ppid": os.getppid(),
            "argv": _arguments(),
            "python": "{}.{}.{}".format(*sys.version_info[:3]),
            "executable": sys.executable or "",
            "tensorflow": version,
            "tensorflow_path": folder,
        }
        self.link.send(encode("hook", fields))

    def tensorflow(self) -> "tuple[str, str]":
        """TensorFlow's version and the folder of its package, once it is there."""
        assert self.context is not None
        version: str = self.context.pywrap_tf_session.get_version()
        return version, (sys.modules["tensorflow"].__file__ or "").rpartition("/")[0]

    def tensorflow_is_here(self, context: "ModuleType") -> None:
        """Read what the user chose; called once TensorFlow can be asked."""
        self.context = context
        self.hello()
        self.quietly("reading TFMEMTOP_INTERVAL", self._read_interval)
        self.quietly("reading TFMEMTOP_SETTINGS", self._read_settings)

    def _read_interval(self) -> None:
        self.interval = max(0.01, float(os.environ.get("TFMEMTOP_INTERVAL") or self.interval))

    def _read_settings(self) -> None:
        self.settings = parse_settings(os.environ.get("TFMEMTOP_SETTINGS") or "{}")

    def _ask_for_dumps(self) -> None:
        """Have TensorFlow write down each pool that runs out, unless the user has it do so elsewhere.

        Past ``os.environ``, where the script would see it. Programs that it starts see it, unless they are Pythons
        that the hook is in: hence only where there are pools.
        """
        folder = os.environ.get("TFMEMTOP_DUMPS")
        # A child has the variable from its parent, with the parent's number.
        if folder and os.environ.get("TF_BFC_MEMORY_DUMP", folder).startswith(folder):
            os.putenv("TF_BFC_MEMORY_DUMP", f"{folder}/{self.pid}")

    def initialised(self, options: Any, settled: "list[str]") -> None:
        """TensorFlow's devices are there, made with the GPUOptions *options*: start to read them."""
        sampler = self._sampler()
        if sampler is not None:
            if options is None or options.visible_device_list or uses_cpu_pool():
                self.quietly("asking for memory dumps", self._ask_for_dumps)
            sampler.devices_changed(options, settled)

    def session_made(self, growth: Optional[bool]) -> None:
        """A TF1-style session has made devices: they are read natively, once that is possible."""
        if not self.sessions and not self._eager():
            self.making.made()
        self.sessions = True
        sampler = self._sampler()
        if sampler is not None:
            self.quietly("asking for memory dumps", self._ask_for_dumps)
            sampler.session_made(growth)

    def _sampler(self) -> Optional[Sampler]:
        if self.sampler is None and not self.inherited and self.context is not None:
            sampler = Sampler(self, self.context)
            sampler.start()
            self.sampler = sampler
        return self.sampler

    def _exit(self) -> None:
        for _ in range(_FAREWELLS):
            try:
                if os.getpid() == self.pid and self.greeted and not self.link.dead:
                    self.quietly("ending", self._say_goodbye)
                return
            except BaseException:
                # A signal handler's. No code of the script's is left to catch it: Python would print it, as ours.
                continue

    def _say_goodbye(self) -> None:
        if self.sampler is not None:
            self.sampler.stop()
        self.send("hook_end", reason="exit", dropped=self.link.dropped)
        self.link.close()

    def _let_go(self) -> None:
        """In a forked child: close the parent's line, which would hide the parent's end, and start over."""
        self.collector.on()
        link = self.link
        self._start_over()
        link.close()
        # Another thread may have held the allocator's lock at the fork; nobody will release it here.
        self.inherited = self.sessions or self._eager()

    def _eager(self) -> bool:
        """Whether TensorFlow's eager context has made its devices."""
        current = None if self.context is None else self.context._context
        return current is not None and current._context_handle is not None


def encode(kind: str, fields: "dict[str, Any]") -> bytes:
    """One packet. Texts are cut to what a packet can hold, and made fit for UTF-8."""
    message = {"type": kind}
    message.update((name, _clean(value)) for name, value in fields.items())
    return json.dumps(message).encode()


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return value[:_TEXT].encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_clean(key): _clean(item) for key, item in value.items()}
    return [_clean(item) for item in value] if isinstance(value, list) else value


def _arguments() -> "list[str]":
    arguments: list[str] = []
    room = _TEXT
    for argument in getattr(sys, "orig_argv", None) or getattr(sys, "argv", []):
        room -= len(argument)
        if room < 0:
            return [*arguments, "…"]
        arguments.append(argument)
    return arguments
