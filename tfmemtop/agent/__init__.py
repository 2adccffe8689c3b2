"""The inside of the watched process: settle the settings, read the allocators, tell the monitor.

Loaded by path by ``inject/sitecustomize.py`` when the script imports TensorFlow; Python 3.9 and later,
standard library only. Nothing here may change what the script does, prints or catches, so the threads
and sockets are those of the C modules: no list of threads shows them, no library has patched them.

Once loaded, its modules are taken out of ``sys.modules``: they import one another at their top, never later.
"""

from typing import Any

from . import threads
from .arrival import Arrival
from .core import Agent


def arrive(start_new_thread: Any, allocate_lock: Any) -> Arrival:
    """Say hello to the monitor; the finder returned takes the place of the one that called.

    The arguments are those functions of ``_thread`` as they were before the script could replace them.
    """
    threads.start_new_thread, threads.allocate_lock = start_new_thread, allocate_lock
    agent = Agent()
    agent.quietly("saying hello", agent.hello)
    return Arrival(agent)
