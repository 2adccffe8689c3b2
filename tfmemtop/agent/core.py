"""Puts the agent's parts together: gives each part what it needs, and starts it when its time has come."""

import atexit
import gc
import os
import sys
from typing import TYPE_CHECKING, Any, Callable, Optional

from . import real_threads
from .apply_settings import Settled, parse_settings
from .failures import is_exhaustion, uncaught
from .import_watch import ImportWatch
from .joining import earlier, remember
from .link import Link
from .messenger import Messenger, TensorFlow, encode
from .parts import Parts
from .patches import Patches
from .requests import options_of, requested_earlier
from .sampler import GOODBYE_S, OUT_OF_MEMORY_S, Sampler

if TYPE_CHECKING:
    from types import ModuleType

_FOLDER, _FLAGS = "TFMEMTOP_XLA", "XLA_FLAGS"
_DIGITS = "0123456789"

_LISTENS, _LISTEN_S = 60, 0.05  # an engine that has gone is noticed within a second
_FAREWELLS = 3  # attempts to send the last event: a signal of the script's may interrupt one


class Agent:
    """The one agent of a process. ``messenger`` sends its events, ``import_watch`` waits for TensorFlow."""

    def __init__(
        self, path: str, from_signal_handler: Callable[[Exception], bool], told: "Optional[dict[str, str]]" = None
    ) -> None:
        """*path* is the engine's socket.

        *from_signal_handler* returns whether a signal handler of the script raised an exception. In a process that ran
        already, *told* has the values that the environment has otherwise.
        """
        self._joined = told is not None
        self._told: Any = os.environ if told is None else told
        self.messenger = Messenger(path, from_signal_handler, self._start_over)
        self._context: Optional[ModuleType] = None  # tensorflow.python.eager.context, once it is there
        self._interval = 0.1
        self._parts = Parts.of(self.messenger)
        _, self._collector, self._making, self._census, self._functions, self._lines, self._windows = self._parts
        self.collects = False
        """Whether the collector is off for as long as the agent is brought into a process that runs already."""
        self._sampler: Optional[Sampler] = None
        self._folder: Optional[str] = None  # the session's folder, for large data
        self._in_place = True  # whether pools may be read in place
        self._sessions = False  # whether there has been a TF1-style session
        self._inherited = False
        patches = self._patches = Patches(self._parts, self._initialised, self._session_made)
        awaited: dict[str, tuple[str, Callable[..., object]]] = {
            "eager.context": ("TensorFlow", self._tensorflow_is_here),
            "framework.errors_impl": ("errors", patches.errors),
            "ops.resource_variable_ops": ("variables", patches.variables),
            "ops.ref_variable": ("TF1 variables", patches.reference_variables),
            "client.session": ("sessions", patches.sessions),
            "data.ops.dataset_ops": ("data sets", patches.datasets),
            "eager.polymorphic_function.polymorphic_function": ("functions", patches.functions),
            "framework.func_graph": ("graphs", patches.graphs),
            "profiler.internal._pywrap_profiler": ("profilers", patches.profilers),
        }
        modules = {f"tensorflow.python.{name}": action for name, action in awaited.items()}
        self.import_watch = ImportWatch(self, self.messenger.guarded, modules)
        atexit.register(self._exit)
        os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        self.messenger.guarded("fork", bool)

    def _start_over(self) -> None:
        """Begin anew in a forked child, which needs a connection of its own and lacks the parent's thread."""
        if self.collects:
            gc.enable()
        self.messenger.start_over()
        self._sampler = None
        if self._context is not None:
            _own_folder(self.messenger.pid)
        # Another thread may have held the allocator's lock at the fork. In the child it is never released.
        self._inherited = self._sessions or self._eager()

    def _tensorflow_is_here(self, context: "ModuleType") -> None:
        """Report the version of TensorFlow, read the user's settings, and take part in the making of devices."""
        self.messenger.guarded("hello", self._greet, context)
        self._patches.context(context)
        remember(context, self)

    def _greet(self, context: "ModuleType") -> None:
        self._context = context
        self.messenger.found(TensorFlow.of(context))
        self._read_told()

    def _read_told(self) -> None:
        guarded, told = self.messenger.guarded, self._told
        self._interval = max(0.01, self._number("TFMEMTOP_INTERVAL", self._interval))
        holders_interval = max(0.0, self._number("TFMEMTOP_HOLDERS_INTERVAL", 60.0))
        settings = guarded("environment:TFMEMTOP_SETTINGS", parse_settings, told.get("TFMEMTOP_SETTINGS") or "{}")
        self._patches.settings = settings or self._patches.settings
        if not self._joined and guarded("xla", _own_folder, self.messenger.pid) is False:
            self.messenger.send("xla_cluster", name="", module=-1, missing="scripts_flags")
        self._folder = told.get("TFMEMTOP_DATA")
        self._in_place = "TFMEMTOP_NO_PROBE" not in told
        self._windows.may_write(self._folder, holders_interval, self._joined)

    def _number(self, name: str, otherwise: float) -> float:
        number: Optional[float] = self.messenger.guarded(
            f"environment:{name}", float, self._told.get(name) or otherwise
        )
        return otherwise if number is None else number

    def _initialised(self, options: Any, settled: "list[Settled]") -> None:
        """Start to read TensorFlow's devices, which have been made with the GPUOptions *options*."""
        self._sample(Sampler.devices_changed, options, settled)

    def _session_made(self, growth: Optional[bool]) -> None:
        """Start to read the devices that a TF1-style session has made, once their allocators can be found."""
        if not self._sessions and not self._eager():
            self._making.made()
        self._sessions = True
        self._sample(Sampler.session_made, growth)

    def _sample(self, begin: Callable[..., None], *arguments: Any) -> None:
        """Call *begin*, a method of the sampler, whose thread is started first; not in a child that was forked late."""
        if self._sampler is None and not self._inherited and self._context is not None:
            sampler = Sampler(self._parts, self._context, self._interval, self._folder, self._in_place)
            sampler.start()
            self._sampler = sampler
        if self._sampler is not None:
            begin(self._sampler, *arguments)

    def join(self) -> None:
        """Take up what the script has made before. This runs in a thread of the agent's; the script does not wait."""
        guarded = self.messenger.guarded
        if guarded("search:TensorFlow", self.import_watch.look) is not False:
            sys.meta_path.insert(0, self.import_watch)
        if self._context is not None:
            guarded("search:earlier objects", self._find_earlier)
        self._meet_devices()
        self.messenger.send("injection", state="arrived")

    def begin_again(self, told: "dict[str, str]") -> None:
        """Work for another engine, if the one before has gone; else only report to it that an agent is here already."""
        if not self._silent():
            link = Link(told["TFMEMTOP_SOCKET"])
            link.send(encode("injection", {"state": "already"}))
            link.close()
            return
        self._told, self._joined, self._sampler = told, True, None
        self.messenger.begin_again(told["TFMEMTOP_SOCKET"])
        self._windows.start_over()
        self._census.begin_again()
        self._functions.begin_again()
        self.messenger.hello()
        if self._context is not None:
            self._read_told()
        self._meet_devices()
        self.messenger.send("injection", state="arrived")

    def _silent(self) -> bool:
        """Return whether the engine has gone and the agent's thread has ended. This may wait for some seconds."""
        link = self.messenger.link
        for _ in range(_LISTENS):
            if self._sampler is None:
                link.listen()
            if link.dead:
                return self._sampler is None or self._sampler.stop()
            real_threads.pause(_LISTEN_S)
        return False

    def _find_earlier(self) -> None:
        found = earlier(self._collector)
        self._census.variables.found_earlier(found.variables)
        self._functions.found_earlier(found.trainers)
        for graph in found.graphs:
            self._lines.graph_made(graph)
        for session in found.sessions:
            self._lines.graph_made(session._graph)
            if not session._target:
                self._census.variables.session_made(session)
                self._sessions = True

    def _meet_devices(self) -> None:
        """Start to read the devices that exist already."""
        current = None if self._context is None else self._context._context
        for _ in range(_LISTENS):
            if current is None or current._context_handle is None or current._initialized:
                break
            real_threads.pause(_LISTEN_S)  # the script is just making them
        if not self._eager():
            if self._sessions:
                self._sample(Sampler.session_made, None)
            return
        guarded = self.messenger.guarded
        options = guarded("read:GPU options", options_of, current)
        for asked in guarded("search:requests", requested_earlier, current) or ():
            self.messenger.send("requested", **asked, file="", line=0, error=None)
        guarded("devices", self._making.found)
        self._sample(Sampler.devices_found, options)

    def _eager(self) -> bool:
        """Whether TensorFlow's eager context has made its devices."""
        current = None if self._context is None else self._context._context
        return current is not None and current._context_handle is not None

    def _exit(self) -> None:
        messenger = self.messenger
        for _ in range(_FAREWELLS):
            try:
                if os.getpid() == messenger.pid and messenger.greeted and not messenger.link.dead:
                    messenger.guarded("end", self._say_goodbye)
                return
            except BaseException:
                # A signal handler raised it. No code of the script's is left to catch it, and Python would print it
                # as an error of the agent's.
                continue

    def _say_goodbye(self) -> None:
        error = self.messenger.guarded("end", uncaught)
        if error is not None:
            self.messenger.send("script_error", **error)
            self._census.raised = True
            self._collector.provide()
        ran_out = error is not None and (error["kind"] == "ResourceExhaustedError" or is_exhaustion(error["message"]))
        if self._sampler is not None:
            self._sampler.stop(OUT_OF_MEMORY_S if ran_out else GOODBYE_S)
        self.messenger.goodbye()


def _own_folder(pid: int) -> bool:
    """Put *pid* into the path in ``XLA_FLAGS`` to which XLA writes its reports, if the user has requested reports.

    Return ``False`` if they are requested, and the path is not there: the script has set the variable anew.

    Each process needs a folder, as modules have the same names in every process. XLA reads its flags when TensorFlow
    first compiles. The variable is set past ``os.environ``, where the script would see it.
    """
    folder = os.environ.get(_FOLDER)
    if not folder:
        return True
    before, found, after = os.environ.get(_FLAGS, "").partition(folder + "/")
    if found:
        os.putenv(_FLAGS, before + found + str(pid) + after.lstrip(_DIGITS))
    return bool(found)
