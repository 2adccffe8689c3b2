"""Makes imports cheaper: without the garbage collector, and without a module that is not needed."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Exclude the objects that are made in this block from garbage collection, during the block and later.

    Such objects stay loaded, and a search of them for cycles takes a tenth of the time. If the block is the first to
    import asyncio, asyncio is loaded without ``ssl``: our sockets are local to this machine, and OpenSSL takes two
    megabytes of memory in each process.
    """
    gc.disable()
    try:
        if "asyncio" not in sys.modules and "ssl" not in sys.modules:
            sys.modules["ssl"] = None  # type: ignore[assignment]  # makes `import ssl` fail
            try:
                import asyncio  # noqa: F401
            finally:
                del sys.modules["ssl"]
        yield
    finally:
        gc.freeze()
        gc.enable()
