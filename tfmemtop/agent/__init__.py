"""The inside of the watched process: settle the settings, read the allocators, tell the monitor.

Loaded by path by ``inject/sitecustomize.py`` when the script imports TensorFlow; Python 3.9 and later,
standard library only. Nothing here may change what the script does, prints or catches, so the threads
and sockets are those of the C modules: no list of threads shows them, no library has patched them.
"""

from .arrival import Arrival
from .core import Agent


def arrive() -> Arrival:
    """Say hello to the monitor; the finder returned takes the place of the one that called."""
    agent = Agent()
    agent.quietly("saying hello", agent.hello)
    return Arrival(agent)
