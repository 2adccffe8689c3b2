"""This process under a limit that the kernel keeps: as on a full disk, or where no descriptor is left."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def limited(kind: int, soft: int) -> Iterator[None]:
    """During the ``with`` block the resource *kind*, such as ``RLIMIT_FSIZE``, is limited to *soft*."""
    before = resource.getrlimit(kind)
    resource.setrlimit(kind, (soft, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(kind, before)
