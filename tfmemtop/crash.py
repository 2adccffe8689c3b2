"""Restores the terminal when a library, such as the driver's, crashes this process.

Python raises no exception in such a crash and cleans nothing up. So the handlers are set by the C library's own
``signal``. A handler of Python's would run only later, in the main thread. Until then the crash would repeat without
end.
"""

import ctypes
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_CRASHES = (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGFPE)
_DEFAULT = 0  # SIG_DFL

_last: list[Callable[[int], None]] = []


@contextmanager
def at_crash(last: Callable[[int], None]) -> Iterator[None]:
    """Call *last* with the signal's number if this process crashes within the context, in the thread that crashed.

    If contexts are nested, the innermost function is called first. The signal then ends the process as usual.
    """
    _last.append(last)
    try:
        if len(_last) > 1:
            yield
        else:
            with _handled():
                yield
    finally:
        _last.remove(last)


@contextmanager
def _handled() -> Iterator[None]:
    set_handler = ctypes.CDLL(None).signal
    set_handler.restype, set_handler.argtypes = ctypes.c_void_p, (ctypes.c_int, ctypes.c_void_p)

    def crashed(number: int) -> None:
        for crash in _CRASHES:
            set_handler(crash, _DEFAULT)  # a second crash ends the process at once
        try:
            for last in reversed(_last):
                last(number)
        finally:
            os.kill(os.getpid(), number)

    try:
        handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(crashed)
    except MemoryError:  # a callback from C needs executable memory, and this kernel does not allow it
        yield
        return
    address = ctypes.cast(handler, ctypes.c_void_p)
    before = {crash: set_handler(crash, address) for crash in _CRASHES}
    try:
        yield
    finally:
        for crash, old in before.items():
            set_handler(crash, old)
