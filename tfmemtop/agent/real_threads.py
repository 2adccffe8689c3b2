"""The interpreter's own threads and locks, even if a library has replaced them.

Once gevent or eventlet has patched ``_thread``, it would run the sampler as one of its greenlets. These wait while
TensorFlow computes.
"""

import _thread

start_new_thread = _thread.start_new_thread
allocate_lock = _thread.allocate_lock
get_ident = _thread.get_ident

_never = allocate_lock()
_never.acquire()

main = 0  # get_ident() of the main thread; the hook sets it


def pause(seconds: float) -> None:
    """Let the other threads run for so long."""
    _never.acquire(True, seconds)
