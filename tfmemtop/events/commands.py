"""What a reader asks of the engine."""

import msgspec

from tfmemtop.settings import Settings


class Command(msgspec.Struct, frozen=True, kw_only=True, tag_field="do"):
    """Base of what a reader asks of the engine."""


class Relaunch(Command, tag="relaunch", frozen=True):
    """End the run if it still goes, wait for its memory, start the next."""

    argv: list[str]
    settings: Settings
    grace_s: float = 10.0


class Stop(Command, tag="stop", frozen=True):
    """End the run: TERM, KILL after the grace. With ``quit`` the engine ends after it."""

    grace_s: float = 10.0
    quit: bool = False


class Leave(Command, tag="leave", frozen=True):
    """The reader goes; the run goes on under its engine."""


class Signal(Command, tag="signal", frozen=True):
    """Send a signal to processes."""

    pids: list[int]
    signal: int


class Input(Command, tag="input", frozen=True):
    """Type into the script's terminal."""

    text: str


class Resize(Command, tag="resize", frozen=True):
    """Give the script's terminal a size, in cells."""

    columns: int
    rows: int


class ReadEnvironment(Command, tag="read_environment", frozen=True):
    """Ask for an :class:`Environment` event."""

    pid: int


class MapWanted(Command, tag="map_wanted", frozen=True):
    """Ask for :class:`MemoryMap` events of one pool until told otherwise; the reader's latest wish counts.

    ``pace_s`` ``None`` takes the wish back. With ``region``, its address, all cells are of that one.
    """

    pid: int
    device: str
    pace_s: float | None = 1.0
    region: int | None = None


class CensusNow(Command, tag="census_now", frozen=True):
    """Ask for a :class:`Census` event of a process; one comes every 30 s anyway where it costs little.

    With ``tensors``, of live tensors too: the script stands still for a tenth of a second or so.
    """

    pid: int
    tensors: bool = False
