"""Loads the code that reads a process from outside when it is first needed. In most sessions it never is."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfmemtop.engine.sources.source import Source
from tfmemtop.engine.stream.stream import Stream
from tfmemtop.events import PutDown

if TYPE_CHECKING:
    from tfmemtop.engine.sources.outside.following import FromOutside


class WhenAsked(Source):
    """Does the same as :class:`FromOutside`, and takes the same arguments."""

    def __init__(
        self,
        stream: Stream,
        folder: Path,
        take_file: Callable[[PutDown], None],
        interval_s: float,
        told: dict[str, str],
    ) -> None:
        self._made_with = stream, folder, take_file, interval_s, told
        self._reading: FromOutside | None = None

    def follow(self, pid: int) -> bool:
        """Follow process *pid* from now on. Return ``False`` if there is no such process."""
        if self._reading is None:
            from tfmemtop.engine.sources.outside.following import FromOutside

            self._reading = FromOutside(*self._made_with)
        return self._reading.follow(pid)

    def inject(self) -> None:
        """Ask the Python of the process that is followed to run the hook."""
        if self._reading is not None:
            self._reading.inject()

    def sessions(self) -> frozenset[int]:
        """Return the process sessions of the helper processes that ask a Python to run the hook."""
        return self._reading.sessions() if self._reading is not None else frozenset()

    def send(self, pid: int, command: dict[str, Any]) -> bool:
        """Take a command that is meant for the hook of process *pid*. Return whether it was taken."""
        return self._reading is not None and self._reading.send(pid, command)

    def close(self) -> None:
        """Leave the process, which goes on as before."""
        if self._reading is not None:
            self._reading.close()
