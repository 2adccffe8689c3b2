"""The inside of the watched process: settle the settings, read the allocators, tell the monitor.

Loaded by path by ``inject/sitecustomize.py`` when the script imports TensorFlow; Python 3.9 and later,
standard library only. Nothing here may change what the script does, prints or catches, so the threads
and sockets are those of the C modules: no list of threads shows them, no library has patched them.

Once loaded, its modules are taken out of ``sys.modules``: they import one another at their top, never later.
"""

from typing import Any, Callable

from . import threads
from .arrival import Arrival
from .core import Agent


def arrive(
    from_signal_handler: Callable[[Exception], bool],
    monitor: str,
    start_new_thread: Any,
    allocate_lock: Any,
    get_ident: Any,
    main_ident: int,
) -> Arrival:
    """Say hello to the *monitor*; the finder returned takes the place of the one that called.

    *from_signal_handler* says of an exception whether it is the script's. Then come functions of ``_thread``
    as they were before the script could replace them, and what the last of them gave in the main thread.
    """
    threads.start_new_thread, threads.allocate_lock, threads.get_ident = start_new_thread, allocate_lock, get_ident
    threads.main = main_ident
    agent = Agent(monitor, from_signal_handler)
    agent.quietly("saying hello", agent.hello)
    return Arrival(agent)
