"""Puts the agent's parts together: gives each part what it needs, and starts it when its time has come."""

import atexit
import os
import sys
import time
from typing import TYPE_CHECKING, Any, Callable, Optional

from .environment import variable
from .failures import is_exhaustion, uncaught
from .framework_readers import READERS, Reader
from .messenger import Messenger
from .parts import Parts
from .patches import Patches
from .sampler import Sampler
from .settings import Settled, parse_settings

if TYPE_CHECKING:
    from types import ModuleType

_FOLDER, _FLAGS = "TFMEMTOP_XLA", "XLA_FLAGS"
_DIGITS = "0123456789"

_FAREWELLS = 3  # attempts to send the last event: a signal of the script's may interrupt one
_GOODBYE_S = 0.5  # the processor's time that the agent's last work takes at most as the script ends
_OUT_OF_MEMORY_S = 1.0  # the same, where memory ran out: then what the script held is the answer
_AFTER_LOOK_S = 0.15  # of this time, what is left after the look for tensors
_BUSY = 4  # on a machine so busy that a thread gets a quarter of a core, the work takes so many times as long
_LAST_LOOK_FROM = 16 << 20  # bytes that a pool must hold for that look


class ImportWatch:
    """A finder that finds nothing: at each import it checks whether the awaited modules are complete.

    So no module is loaded in another way than without it; with a wrapped loader it would be. There are enough
    imports: TensorFlow imports hundreds of modules after those that are awaited.
    """

    def __init__(self, guarded: Callable[..., Any], awaited: "dict[str, tuple[str, Callable[..., object]]]") -> None:
        """*guarded* is the messenger's method.

        *awaited* has for each module a word for it and the action, which is called with the module.
        """
        self._guarded = guarded
        self._awaited = awaited
        self.at_each: Optional[Callable[[], object]] = None
        """Called at each import."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Call the actions of the modules that are complete by now, and find nothing."""
        for awaited in list(self._awaited):
            module = sys.modules.get(awaited)
            if module is None or getattr(getattr(module, "__spec__", None), "_initializing", False):
                continue
            found = self._awaited.pop(awaited, None)  # another thread may be first
            if found is not None:
                word, action = found
                self._guarded(f"listen:{word}", action, module)
        if self.at_each is not None:
            self._guarded("listen:frameworks", self.at_each)


class Agent:
    """The one agent of a process. ``messenger`` sends its events, ``import_watch`` waits for TensorFlow and others."""

    def __init__(self, path: str, from_signal_handler: Callable[[Exception], bool]) -> None:
        """*path* is the engine's socket.

        *from_signal_handler* returns whether a signal handler of the script raised an exception.
        """
        self.messenger = Messenger(path, from_signal_handler, self._start_over)
        self._context: Optional[ModuleType] = None  # tensorflow.python.eager.context, once it is there
        self._interval = max(0.01, self._number("TFMEMTOP_INTERVAL", 0.1))
        self._parts = Parts.of(self.messenger)
        self._sampler: Optional[Sampler] = None
        self._folder = variable("TFMEMTOP_DATA")  # the session's folder, for large data
        self._in_place = variable("TFMEMTOP_NO_PROBE") is None  # whether pools may be read in place
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
        modules["keras.src.backend.tensorflow.trainer"] = "epochs", patches.epochs
        modules["tensorflow._api.v2.profiler.experimental"] = "blocks", patches.blocks
        for reader in READERS:
            modules[reader.module] = reader.title, self._arrival_of(reader)
        self.import_watch = ImportWatch(self.messenger.guarded, modules)
        atexit.register(self._exit)
        os.register_at_fork(after_in_child=lambda: self.messenger.guarded("fork", bool))

    def _start_over(self) -> None:
        """Begin anew in a forked child, which needs a connection of its own and lacks the parent's thread."""
        self.messenger.start_over()
        self._parts.windows.refuse()
        self._sampler = None
        if self._context is not None:
            _own_folder(self.messenger.pid)
        # Another thread may have held the allocator's lock at the fork. In the child it is never released.
        others = self._parts.frameworks
        self._inherited = self._sessions or self._eager() or others.any_read or others.begin()
        self.import_watch.at_each = self._sample_frameworks

    def _tensorflow_is_here(self, context: "ModuleType") -> None:
        """Report the version of TensorFlow, read the user's settings, and take part in the making of devices."""
        self.messenger.guarded("hello", self._greet, context)
        self._patches.context(context)

    def _greet(self, context: "ModuleType") -> None:
        self._context = context
        self.messenger.tensorflow = context.pywrap_tf_session.get_version()
        self.messenger.hello()
        guarded = self.messenger.guarded
        holders_interval = max(0.0, self._number("TFMEMTOP_HOLDERS_INTERVAL", 60.0))
        settings = guarded("environment:TFMEMTOP_SETTINGS", parse_settings, variable("TFMEMTOP_SETTINGS") or "{}")
        self._patches.settings = settings or self._patches.settings
        if guarded("xla", _own_folder, self.messenger.pid) is False:
            self.messenger.send("xla_cluster", name="", module=-1, missing="scripts_flags")
        self._parts.windows.may_write(self._folder, holders_interval)

    def _arrival_of(self, reader: Reader) -> "Callable[[ModuleType], None]":
        def arrived(module: "ModuleType") -> None:
            self._parts.frameworks.found(reader, module, lambda: self.messenger.guarded("watch", self._sample))
            self.import_watch.at_each = self._sample_frameworks

        return arrived

    def _sample_frameworks(self) -> None:
        """Start to read the frameworks' devices, as soon as one of them may be read."""
        if self._parts.frameworks.begin():
            self.import_watch.at_each = None
            self._sample()

    def _number(self, name: str, otherwise: float) -> float:
        number: Optional[float] = self.messenger.guarded(f"environment:{name}", float, variable(name) or otherwise)
        return otherwise if number is None else number

    def _initialised(self, options: Any, settled: "list[Settled]") -> None:
        """Start to read TensorFlow's devices, which have been made with the GPUOptions *options*."""
        self._sample(Sampler.devices_changed, options, settled)

    def _session_made(self, growth: Optional[bool]) -> None:
        """Start to read the devices that a TF1-style session has made, once their allocators can be found."""
        if not self._sessions and not self._eager():
            self._parts.making.made()
        self._sessions = True
        self._sample(Sampler.session_made, growth)

    def _sample(self, begin: "Optional[Callable[..., None]]" = None, *arguments: Any) -> None:
        """Call *begin*, a method of the sampler, whose thread is started first; not in a child that was forked late."""
        if self._sampler is None and not self._inherited:
            sampler = Sampler(self._parts, self._context, self._interval, self._folder, self._in_place)
            sampler.start()
            self._sampler = sampler
        if self._sampler is not None and begin is not None:
            self._sampler.context = self._context
            begin(self._sampler, *arguments)

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
        ran_out = error is not None and (error["kind"] == "ResourceExhaustedError" or is_exhaustion(error["message"]))
        most_s = _OUT_OF_MEMORY_S if ran_out else _GOODBYE_S
        until, look_s = time.monotonic() + _BUSY * most_s, most_s - _AFTER_LOOK_S
        sampler = self._sampler
        if sampler is not None and sampler.stop(_BUSY * _GOODBYE_S) and sampler.held >= _LAST_LOOK_FROM:
            self._parts.collector.needed = False
            raised = error is not None
            self.messenger.guarded("census", self._parts.census.tell_last, look_s, until - _AFTER_LOOK_S, raised)
        self.messenger.goodbye()


def _own_folder(pid: int) -> bool:
    """Put *pid* into the path in ``XLA_FLAGS`` to which XLA writes its reports, if the user has requested reports.

    Return ``False`` if they are requested, and the path is not there: the script has set the variable anew.

    Each process needs a folder, as modules have the same names in every process. XLA reads its flags when TensorFlow
    first compiles. The variable is set past ``os.environ``, where the script would see it.
    """
    folder = variable(_FOLDER)
    if not folder:
        return True
    before, found, after = (variable(_FLAGS) or "").partition(folder + "/")
    if found:
        os.putenv(_FLAGS, before + found + str(pid) + after.lstrip(_DIGITS))
    return bool(found)
