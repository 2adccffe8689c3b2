"""How a run ended, as a value. Pure."""

import signal
from enum import Enum

import msgspec

from tfmemtop.exit_codes import SIGNALLED

_BY_SOMEBODY = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_SIGNALS = frozenset(signal.valid_signals())  # kept, because the call takes 0.2 ms


class Way(str, Enum):
    """What ended the run."""

    EXIT = "exit"
    SIGNAL = "signal"
    HOST_MEMORY = "host_memory"  # the kernel, because the host ran out of memory
    UNKNOWN = "unknown"


class Ending(msgspec.Struct, frozen=True):
    """How a run ended. ``number`` is the exit code or the signal's number, ``None`` for the other two ways."""

    way: Way
    number: int | None = None

    @property
    def good(self) -> bool:
        """Whether the exit code was 0."""
        return self.way is Way.EXIT and self.number == 0

    @property
    def signal(self) -> int | None:
        """The number of the signal that ended the run, or ended the program that the run's shell started.

        ``None`` if neither is known.
        """
        if self.way is Way.SIGNAL:
            return self.number
        if self.way is Way.EXIT and self.number is not None and self.number - SIGNALLED in _SIGNALS:
            return self.number - SIGNALLED
        return None

    @property
    def by_somebody(self) -> bool:
        """Whether a signal ended the run with which a person or a scheduler ends programs: INT, TERM or HUP."""
        return self.signal in _BY_SOMEBODY


def how_ended(exit_code: int | None, signal: int | None, oom_killed: bool) -> Ending:
    """Return the ending that the fields of a run's last event describe."""
    if oom_killed:
        return Ending(Way.HOST_MEMORY)
    if signal is not None:
        return Ending(Way.SIGNAL, signal)
    return Ending(Way.UNKNOWN) if exit_code is None else Ending(Way.EXIT, exit_code)
