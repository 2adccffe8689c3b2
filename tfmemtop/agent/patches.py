"""Wraps methods of TensorFlow: most wrappers only observe, and one applies the user's settings."""

import functools
import sys
from typing import TYPE_CHECKING, Any, Callable, Optional

from .apply_settings import Settings, settle
from .callsite import callers_line
from .census import Census
from .datasets import Datasets
from .device_init import Making
from .exhausted import Exhaustion
from .functions import Functions
from .messenger import Messenger
from .operation_lines import OperationLines
from .profilers import hide_our_frame
from .requests import RECORDED, request

if TYPE_CHECKING:
    from types import ModuleType


def patch(
    messenger: Messenger,
    context: "ModuleType",
    errors: "ModuleType",
    settings: Settings,
    making: Making,
    initialised: Callable[..., None],
) -> None:
    """Wrap those of TensorFlow's methods that exist; each that is missing is reported.

    *initialised* is called once the devices are there: with the GPUOptions with which they were made, ``None`` if these
    are not known, and with what *settings* changed in them.
    """
    for name in RECORDED:
        messenger.guarded(f"listen:Context.{name}", _record, messenger, context.Context, name)
    messenger.guarded(
        "listen:Context options", _settle_options, messenger, context.Context, settings, making, initialised
    )
    messenger.guarded("listen:OpError", _notice_exhaustion, messenger, errors.OpError)


def patch_session(
    messenger: Messenger,
    session: "ModuleType",
    session_made: Callable[[Optional[bool]], None],
    lines: OperationLines,
    census: Census,
) -> None:
    """Notice TF1-style sessions, which make devices without the eager context."""

    def note(made: Any) -> None:
        lines.graph_made(made._graph)
        if not made._target:  # else its devices are another process's
            census.variables.session_made(made)
            config = made._config
            session_made(config is not None and bool(config.gpu_options.allow_growth))

    _note_each(messenger, session.BaseSession, "notice:session", note)


def patch_graphs(messenger: Messenger, func_graph: "ModuleType", lines: OperationLines) -> None:
    """Notice the graphs of functions, in which operations are looked up later."""
    _note_each(messenger, func_graph.FuncGraph, "notice:graph", lines.graph_made)


def _note_each(messenger: Messenger, owner: Any, doing: str, note: Callable[[Any], None]) -> None:
    """Have *note* called with each new instance of *owner*, once it is made."""
    original: Callable[..., None] = owner.__init__

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            original(self, *args, **kwargs)
        except BaseException as error:
            hide_our_frame(error)
            raise
        messenger.guarded(doing, note, self)

    owner.__init__ = __init__


def patch_functions(messenger: Messenger, polymorphic_function: "ModuleType", functions: Functions) -> None:
    """Notice each call that traces a ``tf.function``. TensorFlow itself counts the other calls."""
    manager: Any = polymorphic_function._frequent_tracing_detector_manager
    functions.found(manager)
    owner: Any = type(manager)
    kind: Any = polymorphic_function.Function  # without the module itself, which Python empties if it lives on
    original: Callable[..., None] = owner.called_with_tracing

    @functools.wraps(original)
    def called_with_tracing(self: Any, key: Any, function_name: Any, omit_warning: Any) -> None:
        calls = messenger.guarded("count:calls", functions.calls, key)
        try:
            original(self, key, function_name, omit_warning)
        except BaseException as error:
            hide_our_frame(error)
            raise
        messenger.guarded("count:tracings", traced, key, function_name, calls)

    def traced(key: Any, function: Any, calls: int) -> None:
        frame = sys._getframe(1)
        while frame.f_code is not code and frame.f_back is not None:
            frame = frame.f_back
        caller = frame.f_back
        made = None if caller is None else caller.f_locals.get("self")  # this call ends now, and with it f_locals
        kept = isinstance(made, kind) and hasattr(made, "_function_cache")
        functions.traced(key, function, calls, made if kept else None)

    wrapper: Any = called_with_tracing
    code = wrapper.__code__
    owner.called_with_tracing = called_with_tracing


def patch_variables(messenger: Messenger, resource_variable_ops: "ModuleType", census: Census) -> None:
    """Notice each variable that is made.

    ``__new__`` is replaced, and ``__init__`` is not wrapped. A wrapper's frame would be in the tracebacks that
    TensorFlow keeps of its operations, and the ``__init__`` of the common base runs at each ``assign``, too.
    """
    census.found(resource_variable_ops)
    for owner in (resource_variable_ops.ResourceVariable, resource_variable_ops.UninitializedVariable):
        messenger.guarded(f"listen:{owner.__name__}", _notice_making, messenger, census.variables.add, owner)
    executors = resource_variable_ops.context.executor
    messenger.guarded("listen:executors", _notice_executors, messenger, census.executor_made, executors)


def patch_reference_variables(messenger: Messenger, ref_variable: "ModuleType", census: Census) -> None:
    """Notice the variables of TF 1 that are not resource variables."""
    messenger.guarded("listen:RefVariable", _notice_making, messenger, census.variables.add, ref_variable.RefVariable)


def patch_datasets(messenger: Messenger, dataset_ops: "ModuleType", datasets: Datasets) -> None:
    """Notice each data set of tf.data as it is made."""
    for owner in (dataset_ops.UnaryDataset, dataset_ops.DatasetSource):
        messenger.guarded("listen:data sets", _notice_making, messenger, datasets.add, owner)


def _notice_making(messenger: Messenger, add: Callable[..., None], owner: Any) -> None:
    if owner.__new__ is not object.__new__:
        raise TypeError(f"{owner.__name__}.__new__")

    def __new__(cls: Any, *args: Any, **kwargs: Any) -> Any:
        # If cls is a class of the script's with several bases, the next __new__ in its MRO may be that of another base.
        following = super(owner, cls).__new__
        made = object.__new__(cls) if following is object.__new__ else following(cls, *args, **kwargs)
        messenger.guarded("notice:new object", add, made, args, kwargs)
        return made

    owner.__new__ = __new__


def _notice_executors(messenger: Messenger, notice: Callable[[Any], None], module: Any) -> None:
    """Note executors as they are made. A search for them later is not safe: one may just be being deleted."""
    original: Callable[..., Any] = module.new_executor

    @functools.wraps(original)
    def new_executor(enable_async: Any, *args: Any, **kwargs: Any) -> Any:
        messenger.guarded("notice:executor", notice, enable_async)
        return original(enable_async, *args, **kwargs)

    module.new_executor = new_executor


def _record(messenger: Messenger, owner: type, name: str) -> None:
    """Wrap the method *name*: report every call and its outcome, and never change either."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            result = original(self, *args, **kwargs)
        except BaseException as error:
            hide_our_frame(error)
            messenger.guarded(f"record:{name}", _report_call, messenger, name, args, kwargs, error)
            raise
        messenger.guarded(f"record:{name}", _report_call, messenger, name, args, kwargs, None)
        return result

    setattr(owner, name, call)


def _report_call(
    messenger: Messenger, name: str, args: "tuple[Any, ...]", kwargs: "dict[str, Any]", error: Optional[BaseException]
) -> None:
    line = callers_line()
    raised = None if error is None else f"{type(error).__name__}: {error}"
    messenger.send("requested", **request(name, args, kwargs), file=line.told, line=line.number, error=raised)


def _settle_options(
    messenger: Messenger, owner: type, settings: Settings, making: Making, initialised: Callable[..., None]
) -> None:
    """Wrap the methods in which TensorFlow makes its GPU options final, so that the user's settings win."""
    compute: Callable[[Any], Any] = owner._compute_gpu_options  # type: ignore[attr-defined]
    initialise: Callable[[Any], Any] = owner._initialize_logical_devices  # type: ignore[attr-defined]
    latest: list[Any] = [None]

    @functools.wraps(compute)
    def compute_gpu_options(self: Any) -> Any:
        try:
            options = compute(self)
        except BaseException as error:
            hide_our_frame(error)
            messenger.guarded("devices", refused, self, error)
            raise
        messenger.guarded("settle", note, self, options)
        return options

    def refused(context: Any, error: BaseException) -> None:
        if isinstance(error, Exception) and context._context_handle is None:
            making.refused(error)

    def note(context: Any, options: Any) -> None:
        settled = settle(options, settings)
        # TensorFlow reads the options again later, for functions; those no longer make devices.
        if context._context_handle is None:
            latest[0] = (options, settled)

    @functools.wraps(initialise)
    def initialize_logical_devices(self: Any) -> Any:
        try:
            result = initialise(self)
        except BaseException as error:
            hide_our_frame(error)
            raise
        messenger.guarded("devices", made, self)
        # Not earlier: a thread of the agent's before TensorFlow's own would make Python warn of a fork.
        messenger.guarded("read:allocators", initialised, *(latest[0] or (None, [])))
        return result

    def made(context: Any) -> None:
        if not context._initialized:  # else TensorFlow only lists them again, since a cluster has changed
            making.made()

    owner._compute_gpu_options = compute_gpu_options  # type: ignore[attr-defined]
    owner._initialize_logical_devices = initialize_logical_devices  # type: ignore[attr-defined]


def _notice_exhaustion(messenger: Messenger, error_class: type) -> None:
    """Report allocation failures as TensorFlow makes its exception for them; *error_class* is the base of all."""
    original = error_class.__init__  # type: ignore[misc]
    exhaustion = Exhaustion(messenger)

    # OpError.__reduce__ reads the signature of this function.
    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        messenger.guarded("notice:failure", exhaustion.notice, self._message)

    error_class.__init__ = __init__  # type: ignore[misc]
