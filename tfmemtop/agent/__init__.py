"""The agent: it runs in the watched process, applies the settings, reads the allocators and reports to the engine.

``inject/sitecustomize.py`` loads it by path when the script imports TensorFlow or another framework that it reads. It
runs on Python 3.9 and later.
Nothing here may change what the script does, prints or catches. So the agent takes threads and sockets from Python's
C modules: no list of threads shows them, and no library has patched them.

The modules import one another, the stand-ins in ``stdlib``, and C modules. Of the C modules they get the functions and
types that the hook kept before the script began. If the script replaces a function (``mock.patch("time.monotonic")``),
the agent still calls the original, and never the replacement. All imports are at the top of a file, so that they run
only while the agent is loaded.
"""

from typing import Any, Callable

from . import real_threads
from .core import Agent


def arrive(from_signal_handler: "Callable[[Exception], bool]", engine: str, main_thread: int) -> Any:
    """Make the agent, and send its first event to the engine, whose socket has the path *engine*.

    Return the finder that replaces the caller in ``sys.meta_path``. *from_signal_handler* returns whether a signal
    handler of the script raised an exception. *main_thread* is the main thread's ``_thread.get_ident()``.
    """
    real_threads.main = main_thread
    agent = Agent(engine, from_signal_handler)
    agent.messenger.guarded("hello", agent.messenger.hello)
    return agent.import_watch
