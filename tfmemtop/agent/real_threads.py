"""The interpreter's own threads and locks, even if a library has replaced them.

gevent and eventlet, once they have patched ``_thread``, would run the sampler as one of their
greenlets, which waits while TensorFlow computes.
"""

import _thread

start_new_thread = _thread.start_new_thread
allocate_lock = _thread.allocate_lock
get_ident = _thread.get_ident

main = 0  # what get_ident gives there, once the hook has told


def alone() -> bool:
    """Whether no Python thread but the main one runs."""
    return _thread._count() == 0
