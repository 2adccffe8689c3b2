"""The result of a build, as the builder's process reports it."""

from typing import Any, Literal, NamedTuple


class Built(NamedTuple):
    """The result of a build.

    If ``state`` is ``built``, the next three fields are as in :class:`~tfmemtop.probe.cache.Library`. Otherwise
    ``unbuilt`` has the fields of an event's ``Unbuilt``.
    """

    state: Literal["built", "unavailable", "failed"]
    path: str = ""
    digest: str = ""
    checksum: int = 0
    unbuilt: dict[str, Any] | None = None
