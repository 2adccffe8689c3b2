"""The agent: it runs in the watched process, applies the settings, reads the allocators and reports to the engine.

``inject/sitecustomize.py`` loads it by path when the script imports TensorFlow. It runs on Python 3.9 and later.
Nothing here may change what the script does, prints or catches. So the agent takes threads and sockets from Python's
C modules: no list of threads shows them, and no library has patched them.

The modules import one another, the stand-ins in ``stdlib``, and C modules. Of the C modules they get the functions and
types that the hook kept before the script began. If the script replaces a function (``mock.patch("time.monotonic")``),
the agent still calls the original, and never the replacement. All imports are at the top of a file, so that they run
only while the agent is loaded.
"""

import gc
from typing import Any, Callable

from . import real_threads
from .core import Agent
from .joining import agent_before


def arrive(from_signal_handler: "Callable[[Exception], bool]", engine: str, main_thread: int) -> Any:
    """Make the agent, and send its first event to the engine, whose socket has the path *engine*.

    Return the finder that replaces the caller in ``sys.meta_path``. *from_signal_handler* returns whether a signal
    handler of the script raised an exception. *main_thread* is the main thread's ``_thread.get_ident()``.
    """
    real_threads.main = main_thread
    agent = Agent(engine, from_signal_handler)
    agent.messenger.guarded("hello", agent.messenger.hello)
    return agent.import_watch


def join(
    from_signal_handler: "Callable[[Exception], bool]", told: "dict[str, str]", main_thread: int, collects: bool
) -> None:
    """Start the agent in a process that runs already. The call comes in a thread of tfmemtop's own.

    *told* has the values that the environment has otherwise, by name. If an earlier tfmemtop has left an agent in this
    process, that agent begins again, provided that its engine has gone. With *collects*, the hook has turned Python's
    collector off for this call; it is on again when the call ends.
    """
    before = agent_before()
    if before is None:
        real_threads.main = main_thread
    agent = before or Agent(told["TFMEMTOP_SOCKET"], from_signal_handler, told)
    agent.collects = collects
    try:
        if before is not None:
            before.begin_again(told)
        else:
            agent.messenger.guarded("hello", agent.messenger.hello)
            agent.messenger.guarded("join", agent.join)
    finally:
        agent.collects = False
        if collects:
            gc.enable()
