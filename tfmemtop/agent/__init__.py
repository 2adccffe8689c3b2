"""The inside of the watched process: apply the settings, read the allocators, tell the engine.

``inject/sitecustomize.py`` loads it by path when the script imports TensorFlow. It runs on Python 3.9 and later.
Nothing here may change what the script does, prints or catches. So threads and sockets are those of the C modules,
which no list of threads shows and no library has patched.

The modules import one another, the stand-ins in ``stdlib``, and C modules. Of the C modules they get copies that the
hook made before the script began. If the script replaces a function (``mock.patch("time.monotonic")``), the agent
still calls the original, and the replacement sees no call of ours. All imports stand at the top of a file, so that
they run only while the agent is loaded.
"""

from typing import Any, Callable

from . import real_threads
from .core import Agent
from .joining import agent_before


def arrive(from_signal_handler: "Callable[[Exception], bool]", engine: str, main_thread: int) -> Any:
    """Say hello to the engine, whose socket is *engine*. The returned finder replaces the one that called.

    *from_signal_handler* tells whether an exception is the script's. *main_thread* is the main thread's
    ``_thread.get_ident``.
    """
    real_threads.main = main_thread
    agent = Agent(engine, from_signal_handler)
    agent.messenger.guarded("hello", agent.messenger.hello)
    return agent.import_watch


def join(
    from_signal_handler: "Callable[[Exception], bool]", told: "dict[str, str]", main_thread: int, collects: bool
) -> None:
    """Come into a process that runs already, in a thread of ours; *told* has what the environment has otherwise.

    If there is an agent from before, whose engine has gone, that one begins again. With *collects* Python's collector
    has been turned off for us.
    """
    before = agent_before()
    if before is None:
        real_threads.main = main_thread
    agent = before or Agent(told["TFMEMTOP_SOCKET"], from_signal_handler, told)
    if collects:
        agent.collector.take_over()
    try:
        if before is not None:
            before.begin_again(told)
        else:
            agent.messenger.guarded("hello", agent.messenger.hello)
            agent.messenger.guarded("join", agent.join)
    finally:
        agent.collector.on()
