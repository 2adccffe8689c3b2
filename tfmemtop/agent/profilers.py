"""Notices the script's own profilers. They have priority: a window of the probe ends before a profiler starts."""

import functools
from typing import TYPE_CHECKING, Any, Callable

from .messenger import Messenger
from .windows import Windows

if TYPE_CHECKING:
    from types import ModuleType

_PROFILES = 2  # the least RunOptions.TraceLevel at which a session's run is profiled: HARDWARE_TRACE


def patch_profilers(messenger: Messenger, pywrap_profiler: "ModuleType", windows: Windows) -> None:
    """Notice the profilers that are started from Python, and the server by which other programs start them.

    All ways of TensorFlow and Keras to start a profiler use the class and the function of this module.
    """
    owner: Any = pywrap_profiler.ProfilerSession
    owner.start = _gated(messenger, owner.start, windows)
    module: Any = pywrap_profiler
    original: Callable[..., Any] = module.start_server

    @functools.wraps(original)
    def start_server(*args: Any, **kwargs: Any) -> Any:
        messenger.guarded("notice:profiler server", windows.server_begins)
        try:
            return original(*args, **kwargs)
        except BaseException as error:
            hide_our_frame(error)
            raise

    module.start_server = start_server


def patch_traced_runs(messenger: Messenger, session: "ModuleType", windows: Windows) -> None:
    """Notice the runs of TF1-style sessions that are to be profiled (``RunOptions.FULL_TRACE``)."""
    owner: Any = session.BaseSession
    original: Callable[..., Any] = owner.run
    gated = _gated(messenger, original, windows)

    @functools.wraps(original)
    def run(self: Any, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        profiled = getattr(options, "trace_level", 0) >= _PROFILES
        try:
            return (gated if profiled else original)(self, fetches, feed_dict, options, run_metadata)
        except BaseException as error:
            hide_our_frame(error)
            raise

    owner.run = run


def _gated(messenger: Messenger, original: Callable[..., Any], windows: Windows) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        messenger.guarded("profiler", windows.profiler_begins)
        try:
            return original(*args, **kwargs)
        except BaseException as error:
            hide_our_frame(error)
            raise
        finally:
            messenger.guarded("profiler", windows.profiler_began)

    return call


def hide_our_frame(error: BaseException) -> None:
    """Take the wrapper's frame out of the traceback. A bare ``raise`` then leaves the traceback as it is.

    In Python 3.9 and 3.10 a bare ``raise`` uses the old traceback: there the wrapper's line remains.
    """
    if error.__traceback__ is not None:
        error.__traceback__ = error.__traceback__.tb_next
