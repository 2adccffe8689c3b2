"""Imports at a lower price: without the collector of cycles, and without what is loaded for nothing."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """What is made in this block is never looked through for cycles, in it or later.

    It stays loaded, and looking through it takes a tenth of the time. In the block asyncio does without ``ssl``: our
    sockets are this machine's own, and OpenSSL takes two megabytes of each process.
    """
    gc.disable()
    try:
        if "asyncio" not in sys.modules and "ssl" not in sys.modules:
            sys.modules["ssl"] = None  # type: ignore[assignment]  # as if there were none
            try:
                import asyncio  # noqa: F401
            finally:
                del sys.modules["ssl"]
        yield
    finally:
        gc.freeze()
        gc.enable()
