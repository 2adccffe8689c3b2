"""Reading a process from outside, loaded when it is first asked for: in most sessions it never is."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfmemtop.engine.stream.stream import Stream
from tfmemtop.events import PutDown

if TYPE_CHECKING:
    from tfmemtop.engine.sources.outside.following import FromOutside


class WhenAsked:
    """As :class:`FromOutside`, and made with the same."""

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
        """Follow process *pid* from now on. False if there is none."""
        if self._reading is None:
            from tfmemtop.engine.sources.outside.following import FromOutside

            self._reading = FromOutside(*self._made_with)
        return self._reading.follow(pid)

    def inject(self) -> None:
        """Ask the Python of the process that is followed to let the hook in."""
        if self._reading is not None:
            self._reading.inject()

    def sessions(self) -> frozenset[int]:
        """The sessions of processes of ours that ask for that."""
        return self._reading.sessions() if self._reading is not None else frozenset()

    def send(self, pid: int, command: dict[str, Any]) -> bool:
        """Take a command that is meant for the hook of process *pid*; whether it is followed."""
        return self._reading is not None and self._reading.send(pid, command)

    def close(self) -> None:
        """Leave the process, which goes on as before."""
        if self._reading is not None:
            self._reading.close()
