"""The inside of the watched process: settle the settings, read the allocators, tell the monitor.

Loaded by path by ``inject/sitecustomize.py`` when the script imports TensorFlow; Python 3.9 and later.
Nothing here may change what the script does, prints or catches, so the threads and sockets are those of
the C modules: no list of threads shows them, no library has patched them.

Its modules import one another, the stand-ins in ``stdlib``, and C modules: these they get as copies that the hook made
before the script began. What the script puts in their place (``mock.patch("time.monotonic")``) is not seen here,
nor does it see calls from here. All import statements stand at the top: they run only while the agent is loaded.
"""

from typing import Any, Callable

from . import threads
from .arrival import Arrival
from .core import Agent


def arrive(from_signal_handler: "Callable[[Exception], bool]", monitor: str, main_thread: int) -> Any:
    """Say hello to the *monitor*; the finder returned takes the place of the one that called.

    *from_signal_handler* says of an exception whether it is the script's. *main_thread* is what
    ``_thread.get_ident`` gives there.
    """
    threads.main = main_thread
    agent = Agent(monitor, from_signal_handler)
    agent.quietly("saying hello", agent.hello)
    return Arrival(agent)
