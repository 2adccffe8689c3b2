"""Puts the agent's parts together: gives each part what it needs, and starts it when its time has come."""

import atexit
import gc
import os
import sys
from typing import TYPE_CHECKING, Any, Callable, Optional

from . import real_threads
from .apply_settings import Settings, Settled, parse_settings
from .census import WAITING, Census
from .chunk_copies import ChunkCopies
from .collector import Collector
from .device_init import Making
from .functions import Functions
from .import_watch import Awaited, ImportWatch
from .joining import earlier, remember
from .link import Link
from .messenger import Messenger, TensorFlow, encode
from .operation_lines import OperationLines
from .patches import (
    patch,
    patch_datasets,
    patch_functions,
    patch_graphs,
    patch_reference_variables,
    patch_session,
    patch_variables,
)
from .pools import Pools
from .profilers import patch_profilers, patch_traced_runs
from .requests import options_of, requested_earlier
from .sampler import Sampler
from .uncaught import uncaught
from .wait_watch import WaitWatch
from .windows import Windows
from .xla_reports import own_folder

if TYPE_CHECKING:
    from types import ModuleType

CONTEXT = "tensorflow.python.eager.context"
ERRORS = "tensorflow.python.framework.errors_impl"
VARIABLES = "tensorflow.python.ops.resource_variable_ops"
REFERENCES = "tensorflow.python.ops.ref_variable"
SESSION = "tensorflow.python.client.session"
GRAPHS = "tensorflow.python.framework.func_graph"
PROFILER = "tensorflow.python.profiler.internal._pywrap_profiler"
DATASETS = "tensorflow.python.data.ops.dataset_ops"
FUNCTIONS = "tensorflow.python.eager.polymorphic_function.polymorphic_function"

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
        self._holders_interval = 60.0
        self._settings = Settings()
        self._collector = Collector()
        self.collects = False
        """Whether the collector is off for as long as the agent is brought into a process that runs already."""
        self._census = Census(self.messenger, self._collector)
        self._functions = Functions(self.messenger)
        self._making = Making(self.messenger)
        self._sampler: Optional[Sampler] = None
        self._windows = Windows(self.messenger)
        self._lines = OperationLines(self.messenger, self._collector)
        self._folder: Optional[str] = None  # the session's folder, for large data
        self._in_place = True  # whether pools may be read in place
        self._sessions = False  # whether there has been a TF1-style session
        self._inherited = False
        self.import_watch = ImportWatch(
            self,
            self.messenger.guarded,
            Awaited("listen:TensorFlow", self._tensorflow_is_here, CONTEXT, ERRORS),
            [
                Awaited("listen:variables", self._variables_are_here, VARIABLES),
                Awaited("listen:TF1 variables", self._references_are_here, REFERENCES),
                Awaited("listen:sessions", self._sessions_are_here, SESSION),
                Awaited("listen:data sets", self._datasets_are_here, DATASETS),
                Awaited("listen:functions", self._functions_are_here, FUNCTIONS),
                Awaited("listen:graphs", self._graphs_are_here, GRAPHS),
                Awaited("listen:profilers", self._profilers_are_here, PROFILER),
            ],
        )
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
            own_folder(self.messenger.pid)
        # Another thread may have held the allocator's lock at the fork. In the child it is never released.
        self._inherited = self._sessions or self._eager()

    def _tensorflow_is_here(self, context: "ModuleType", errors: "ModuleType") -> None:
        guarded = self.messenger.guarded
        guarded("hello", self._greet, context)
        guarded("listen:TensorFlow", self._patch, context, errors)

    def _greet(self, context: "ModuleType") -> None:
        """Report the version of TensorFlow, and read the user's settings."""
        self._context = context
        self.messenger.found(TensorFlow.of(context))
        self._read_told()

    def _read_told(self) -> None:
        told = self._told
        self.messenger.guarded("environment:TFMEMTOP_INTERVAL", self._read_interval)
        self.messenger.guarded("environment:TFMEMTOP_HOLDERS_INTERVAL", self._read_holders_interval)
        self.messenger.guarded("environment:TFMEMTOP_SETTINGS", self._read_settings)
        if not self._joined:
            self.messenger.guarded("xla", self._name_xlas_folder)
        self._folder = told.get("TFMEMTOP_DATA")
        self._in_place = "TFMEMTOP_NO_PROBE" not in told
        self._windows.may_write(self._folder, self._holders_interval, "TFMEMTOP_TRACE" in told, self._joined)

    def _name_xlas_folder(self) -> None:
        if not own_folder(self.messenger.pid):
            self.messenger.send("xla_cluster", name="", module=-1, missing="scripts_flags")

    def _read_interval(self) -> None:
        self._interval = max(0.01, float(self._told.get("TFMEMTOP_INTERVAL") or self._interval))

    def _read_holders_interval(self) -> None:
        self._holders_interval = max(0.0, float(self._told.get("TFMEMTOP_HOLDERS_INTERVAL") or self._holders_interval))

    def _read_settings(self) -> None:
        self._settings = parse_settings(self._told.get("TFMEMTOP_SETTINGS") or "{}")

    def _patch(self, context: "ModuleType", errors: "ModuleType") -> None:
        patch(self.messenger, context, errors, self._settings, self._making, self._initialised)
        remember(context, self)

    def _variables_are_here(self, module: "ModuleType") -> None:
        patch_variables(self.messenger, module, self._census)

    def _references_are_here(self, module: "ModuleType") -> None:
        patch_reference_variables(self.messenger, module, self._census)

    def _sessions_are_here(self, module: "ModuleType") -> None:
        patch_session(self.messenger, module, self._session_made, self._lines, self._census)
        patch_traced_runs(self.messenger, module, self._windows)

    def _datasets_are_here(self, module: "ModuleType") -> None:
        patch_datasets(self.messenger, module, self._census.datasets)

    def _functions_are_here(self, module: "ModuleType") -> None:
        patch_functions(self.messenger, module, self._functions)

    def _graphs_are_here(self, module: "ModuleType") -> None:
        patch_graphs(self.messenger, module, self._lines)

    def _profilers_are_here(self, module: "ModuleType") -> None:
        patch_profilers(self.messenger, module, self._windows)

    def _initialised(self, options: Any, settled: "list[Settled]") -> None:
        """Start to read TensorFlow's devices, which have been made with the GPUOptions *options*."""
        sampler = self._started_sampler()
        if sampler is not None:
            sampler.devices_changed(options, settled)

    def _session_made(self, growth: Optional[bool]) -> None:
        """Start to read the devices that a TF1-style session has made, once their allocators can be found."""
        if not self._sessions and not self._eager():
            self._making.made()
        self._sessions = True
        sampler = self._started_sampler()
        if sampler is not None:
            sampler.session_made(growth)

    def _started_sampler(self) -> Optional[Sampler]:
        if self._sampler is None and not self._inherited and self._context is not None:
            sampler = self._made_sampler(self._context)
            sampler.start()
            self._sampler = sampler
        return self._sampler

    def _made_sampler(self, context: "ModuleType") -> Sampler:
        messenger, collector = self.messenger, self._collector
        copies = ChunkCopies(messenger, self._folder)
        pools = Pools(messenger, collector, copies, self._in_place)
        windows = self._windows
        waits = WaitWatch(messenger, copies, self._want_tensors, windows.waits)
        return Sampler(
            messenger,
            collector,
            context,
            self._interval,
            pools,
            waits,
            self._functions,
            self._census,
            windows,
            self._lines,
        )

    def _want_tensors(self) -> None:
        self._census.want(tensors=True, moment=WAITING)

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
        link, pause = self.messenger.link, real_threads.allocate_lock()
        pause.acquire()
        for _ in range(_LISTENS):
            if self._sampler is None:
                link.listen()
            if link.dead:
                return self._sampler is None or self._sampler.stop()
            pause.acquire(True, _LISTEN_S)
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
        pause = real_threads.allocate_lock()
        pause.acquire()
        current = None if self._context is None else self._context._context
        for _ in range(_LISTENS):
            if current is None or current._context_handle is None or current._initialized:
                break
            pause.acquire(True, _LISTEN_S)  # the script is just making them
        if not self._eager():
            if self._sessions:
                sampler = self._started_sampler()
                if sampler is not None:
                    sampler.session_made(None)
            return
        guarded = self.messenger.guarded
        options = guarded("read:GPU options", options_of, current)
        for asked in guarded("search:requests", requested_earlier, current) or ():
            self.messenger.send("requested", **asked, file="", line=0, error=None)
        guarded("devices", self._making.found)
        sampler = self._started_sampler()
        if sampler is not None:
            sampler.devices_found(options)

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
        if self._sampler is not None:
            self._sampler.stop()
        self.messenger.goodbye()
