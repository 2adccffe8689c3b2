"""Wraps functions of TensorFlow's modules: most wrappers only observe, and one applies the user's settings."""

import sys
from _weakref import ref
from time import monotonic
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Optional

from .callsite import callers_line, received
from .failures import is_exhaustion
from .parts import Parts
from .phases import Phase
from .settings import RECORDED, Settings, Settled, request, settle

if TYPE_CHECKING:
    from types import ModuleType

_SAME_S = 1.0  # TensorFlow tries for 10 s before it fails: a second failure is never that soon
_PROFILES = 2  # the least RunOptions.TraceLevel at which a session's run is profiled: HARDWARE_TRACE
_SHOWN = ("__module__", "__name__", "__qualname__", "__doc__", "__type_params__")
_ANNOTATED = ("__annotate__", "__annotations__")
"""From Python 3.14 on the first is copied: a read of the second would run it."""


class Outcome(NamedTuple):
    """A call that has ended: its arguments, its result or the exception that it raised, and what was noted before."""

    args: "tuple[Any, ...]"
    kwargs: "dict[str, Any]"
    result: Any
    error: Optional[BaseException]
    noted: Any


class Patches:
    """The wrappers. Each method wraps what is needed of one module of TensorFlow's, and reports what is missing.

    ``settings`` are the user's. ``latest`` has the GPUOptions with which TensorFlow makes its devices, ``None`` if they
    are not known, and what the settings changed in them.
    """

    def __init__(
        self, parts: Parts, initialised: Callable[..., None], session_made: Callable[[Optional[bool]], None]
    ) -> None:
        """*initialised* is called once the devices are there, with ``latest``.

        *session_made* is called with the growth in the configuration of each TF1-style session: these make devices
        without the eager context.
        """
        self.settings = Settings()
        self.latest: tuple[Any, list[Settled]] = (None, [])
        self._messenger, _, self._making, self._census, self._functions, self._lines, self._windows, *_ = parts
        self._phases = parts.phases
        self._guarded = parts.messenger.guarded
        self._failed = "", 0.0  # the newest failed allocation, and when that was
        self._initialised = initialised
        self._session_made = session_made

    def context(self, context: "ModuleType") -> None:
        """Report the calls that request something, and let the user's settings win where the options become final."""
        owner: Any = context.Context
        for name in RECORDED:
            self._guarded(f"listen:Context.{name}", self._observe_request, owner, name)
        self._observe(owner, "_compute_gpu_options", "settle", self._options_computed)
        self._observe(owner, "_initialize_logical_devices", "devices", self._devices_made)

    def errors(self, errors: "ModuleType") -> None:
        """Report allocation failures as TensorFlow makes its exception for them: this class is the base of all."""
        self._observe(errors.OpError, "__init__", "notice:failure", self._error_made)

    def variables(self, resource_variable_ops: "ModuleType") -> None:
        """Notice each variable that is made.

        ``__new__`` is replaced, and ``__init__`` is not wrapped. A wrapper's frame would be in the tracebacks that
        TensorFlow keeps of its operations, and the ``__init__`` of the common base runs at each ``assign``, too.

        Executors are noted as they are made. A search for them later is not safe: one may just be being deleted.
        """
        census = self._census
        census.found(resource_variable_ops)
        for owner in (resource_variable_ops.ResourceVariable, resource_variable_ops.UninitializedVariable):
            self._guarded(f"listen:{owner.__name__}", self._observe_new, owner, census.variables.add)
        executors = resource_variable_ops.context.executor
        made = census.executor_made
        self._guarded("listen:executors", self._observe, executors, "new_executor", "notice:executor", None, made)

    def reference_variables(self, ref_variable: "ModuleType") -> None:
        """Notice the variables of TF 1 that are not resource variables."""
        self._observe_new(ref_variable.RefVariable, self._census.variables.add)

    def datasets(self, dataset_ops: "ModuleType") -> None:
        """Notice each data set of tf.data as it is made."""
        for owner in (dataset_ops.UnaryDataset, dataset_ops.DatasetSource):
            self._guarded("listen:data sets", self._observe_new, owner, self._census.datasets.add)

    def graphs(self, func_graph: "ModuleType") -> None:
        """Notice the graphs of functions, in which operations are looked up later."""
        self._observe(func_graph.FuncGraph, "__init__", "notice:graph", self._graph_made)

    def functions(self, polymorphic_function: "ModuleType") -> None:
        """Notice each call that traces a ``tf.function``. TensorFlow itself counts the other calls."""
        manager: Any = polymorphic_function._frequent_tracing_detector_manager
        kind: Any = polymorphic_function.Function  # without the module itself, which Python empties if it lives on
        self._functions.found(manager)

        def traced(outcome: Outcome) -> None:
            frame = sys._getframe(1)
            while frame.f_code is not code and frame.f_back is not None:
                frame = frame.f_back
            caller = frame.f_back
            made = None if caller is None else caller.f_locals.get("self")  # this call ends now, and with it f_locals
            known = isinstance(made, kind) and hasattr(made, "_function_cache")
            _, key, function, *_ = outcome.args
            if outcome.error is None:
                self._functions.traced(key, function, outcome.noted, made if known else None)

        owner, calls = type(manager), self._functions.calls
        self._observe(owner, "called_with_tracing", "count:tracings", traced, lambda _, key, *__: calls(key))
        code = owner.called_with_tracing.__code__

    def sessions(self, session: "ModuleType") -> None:
        """Notice TF1-style sessions, and those of their runs that are to be profiled (``RunOptions.FULL_TRACE``)."""
        owner: Any = session.BaseSession
        self._observe(owner, "__init__", "notice:session", self._started_session)
        plain: Callable[..., Any] = owner.run
        self._observe(owner, "run", "profiler", self._windows.profiler_began, self._windows.profiler_begins)
        profiled: Callable[..., Any] = owner.run

        def run(self: Any, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
            chosen = profiled if getattr(options, "trace_level", 0) >= _PROFILES else plain
            try:
                return chosen(self, fetches, feed_dict, options, run_metadata)
            except BaseException as error:
                _hide_our_frame(error)
                raise

        _replace(owner, "run", run, plain)

    def profilers(self, pywrap_profiler: "ModuleType") -> None:
        """Notice the profilers that are started from Python, and the server by which other programs start them.

        They have priority: a window of the probe ends before a profiler starts. All ways of TensorFlow and Keras to
        start a profiler use the class and the function of this module.
        """
        owner: Any = pywrap_profiler.ProfilerSession
        self._observe(owner, "start", "profiler", self._windows.profiler_began, self._windows.profiler_begins)
        begins = self._windows.server_begins
        self._observe(pywrap_profiler, "start_server", "notice:profiler server", None, lambda *_, **__: begins())

    def epochs(self, trainer: "ModuleType") -> None:
        """Notice when Keras begins and ends the steps of fit, for each epoch, of evaluate, and of predict.

        These functions are not wrapped. Their wrapper would be a frame in the tracebacks that TensorFlow keeps of its
        operations, and prints in its error messages. They enter a context for their steps, which shows the same.
        """
        owner: Any = trainer.TFEpochIterator
        original: Callable[..., Any] = owner.catch_stop_iteration
        fitted: list[Any] = [None, 0]  # what the newest fit takes its steps from, and the number of its epochs

        def begin(steps: Any, name: str) -> Optional[Phase]:
            if name != "fit":
                return self._phases.begin(name)
            reference, epochs = fitted
            fitted[:] = ref(steps), 1 + (epochs if reference is not None and reference() is steps else 0)
            return self._phases.begin(name, fitted[1])

        def catch_stop_iteration(self: Any) -> Any:
            name = sys._getframe(1).f_code.co_name
            return _Context(original(self), lambda: guarded("notice:phase", begin, self, name), end)

        def end(phase: Optional[Phase]) -> None:
            guarded("notice:phase", self._phases.end, phase)

        guarded = self._guarded
        _replace(owner, "catch_stop_iteration", catch_stop_iteration, original)

    def blocks(self, experimental: "ModuleType") -> None:
        """Notice the script's own blocks, under ``tf.profiler.experimental.Trace``, but not those of single steps.

        TensorFlow has such blocks too, in each call of a function. It does not use the name that is replaced here.
        """
        original: Any = experimental.Trace
        owner: Any = type(original.__name__, (original,), {each: getattr(original, each) for each in _SHOWN[:4]})

        def made(outcome: Outcome) -> None:
            self_, name = (*outcome.args, outcome.kwargs.get("name"))[:2]
            self_._phase = None if outcome.error or "step_num" in outcome.kwargs else name

        def entered(outcome: Outcome) -> None:
            outcome.args[0]._phase = self._phases.begin(outcome.args[0]._phase)

        self._observe(owner, "__init__", "notice:phase", made)
        self._observe(owner, "__enter__", "notice:phase", entered)
        self._observe(owner, "__exit__", "notice:phase", lambda outcome: self._phases.end(outcome.args[0]._phase))
        setattr(experimental, original.__name__, owner)

    def _observe(
        self,
        owner: Any,
        name: str,
        doing: str,
        after: "Optional[Callable[[Outcome], object]]",
        before: "Optional[Callable[..., object]]" = None,
    ) -> None:
        """Have *before* called with the arguments of each call of the function *name* of *owner*, and *after* after it.

        Neither changes the call.
        """
        original: Callable[..., Any] = getattr(owner, name)
        guarded = self._guarded

        def call(*args: Any, **kwargs: Any) -> Any:
            noted = None if before is None else guarded(doing, before, *args, **kwargs)
            try:
                result = original(*args, **kwargs)
            except BaseException as error:
                _hide_our_frame(error)
                if after is not None:
                    guarded(doing, after, Outcome(args, kwargs, None, error, noted))
                raise
            if after is not None:
                guarded(doing, after, Outcome(args, kwargs, result, None, noted))
            return result

        _replace(owner, name, call, original)

    def _observe_new(self, owner: Any, add: Callable[..., None]) -> None:
        """Have *add* called with each new instance of *owner*, before it is initialised, and with the arguments."""
        if owner.__new__ is not object.__new__:
            raise TypeError(f"{owner.__name__}.__new__")
        guarded = self._guarded

        def __new__(cls: Any, *args: Any, **kwargs: Any) -> Any:
            # If cls is a class of the script's with several bases, the next __new__ in its MRO may be that of another
            # base.
            following = super(owner, cls).__new__
            made = object.__new__(cls) if following is object.__new__ else following(cls, *args, **kwargs)
            guarded("notice:new object", add, made, args, kwargs)
            return made

        owner.__new__ = __new__

    def _observe_request(self, owner: Any, name: str) -> None:
        """Report every call of the method *name*, and its outcome."""

        def _report_call(outcome: Outcome) -> None:
            line, error = callers_line(), outcome.error
            raised = None if error is None else f"{type(error).__name__}: {error}"
            asked = request(name, outcome.args[1:], outcome.kwargs)
            self._messenger.send("requested", **asked, file=line.told, line=line.number, error=raised)

        self._observe(owner, name, f"record:{name}", _report_call)

    def _options_computed(self, outcome: Outcome) -> None:
        (context,), error = outcome.args, outcome.error
        settled = [] if error is not None else settle(outcome.result, self.settings)
        # TensorFlow computes the options again later, for functions; those no longer make devices.
        if context._context_handle is None:
            if error is None:
                self.latest = outcome.result, settled
            elif isinstance(error, Exception):
                self._making.refused(error)

    def _devices_made(self, outcome: Outcome) -> None:
        if outcome.error is None:
            (context,) = outcome.args
            if not context._initialized:  # else TensorFlow only lists them again, since a cluster has changed
                self._guarded("devices", self._making.made)
            # Not earlier: a thread of the agent's before TensorFlow's own would make Python warn of a fork.
            self._guarded("read:allocators", self._initialised, *self.latest)

    def _error_made(self, outcome: Outcome) -> None:
        """Report each failed allocation once, although TensorFlow may make several exceptions for it.

        One that another process has sent is that process's own.
        """
        text = outcome.args[0]._message if outcome.error is None else None
        if type(text) is str and is_exhaustion(text) and not received():
            now, (last, at) = monotonic(), self._failed
            self._failed = text, now
            if now - at >= _SAME_S or (text not in last and last not in text):
                self._messenger.send("out_of_memory", message=text)

    def _graph_made(self, outcome: Outcome) -> None:
        if outcome.error is None:
            self._lines.graph_made(outcome.args[0])

    def _started_session(self, outcome: Outcome) -> None:
        session = outcome.args[0]
        if outcome.error is None:
            self._lines.graph_made(session._graph)
            if not session._target:  # else its devices are another process's
                self._census.variables.session_made(session)
                config = session._config
                self._session_made(config is not None and bool(config.gpu_options.allow_growth))


class _Context:
    """The context manager *context*, of which is noted when it begins and ends. What runs in it is not called by it."""

    def __init__(self, context: Any, begin: Callable[[], Any], end: Callable[[Any], Any]) -> None:
        self._context, self._begin, self._end = context, begin, end
        self._noted: Any = None

    def __enter__(self) -> Any:
        self._noted = self._begin()
        return self._context.__enter__()

    def __exit__(self, *raised: Any) -> Any:
        try:
            return self._context.__exit__(*raised)
        except BaseException as error:
            _hide_our_frame(error)
            raise
        finally:
            self._end(self._noted)


def _replace(owner: Any, name: str, wrapper: Any, original: Any) -> None:
    """Put *wrapper* in the place of *original*, like which it looks to the script, as with ``functools.wraps``."""
    annotated = next((each for each in _ANNOTATED if hasattr(original, each)), "__annotations__")
    for each in (*_SHOWN, annotated):
        if hasattr(original, each):
            setattr(wrapper, each, getattr(original, each))
    wrapper.__dict__.update(getattr(original, "__dict__", {}))
    wrapper.__wrapped__ = original
    setattr(owner, name, wrapper)


def _hide_our_frame(error: BaseException) -> None:
    """Take the wrapper's frame out of the traceback. A bare ``raise`` then leaves the traceback as it is.

    In Python 3.9 and 3.10 a bare ``raise`` uses the old traceback: there the wrapper's line remains.
    """
    if error.__traceback__ is not None:
        error.__traceback__ = error.__traceback__.tb_next
